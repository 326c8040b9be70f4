//! What pages are made of: frames with named parts, badges, moments, links. Maud escapes every text.

use jiff::Timestamp;
use maud::{Markup, PreEscaped, html};

use crate::api::{Condition, ConditionStatus, ObjectKey};
use crate::web::api::segment;
use crate::web::graph_picture::Look;
use crate::web::view::{Phase, SyncView};

/// A piece of a page that can be replaced by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    /// The element that holds it.
    pub(super) id: String,
    /// What is inside.
    pub(super) html: String,
}

/// A page without its shell.
#[derive(Debug, Clone)]
pub(super) struct Frame {
    pub(super) title: String,
    /// Everything, with the parts in their places.
    pub(super) main: Markup,
    pub(super) parts: Vec<Part>,
}

impl Frame {
    /// Whether the parts of another frame fit into the places of this one.
    pub(super) fn has_same_parts(&self, other: &Self) -> bool {
        self.parts.len() == other.parts.len()
            && self.parts.iter().zip(&other.parts).all(|(mine, theirs)| mine.id == theirs.id)
    }

    /// Parts that are not as they were.
    pub(super) fn changed_since<'a>(&'a self, last: &Frame) -> Vec<&'a Part> {
        self.parts.iter().zip(&last.parts).filter(|(now, then)| now != then).map(|(now, _)| now).collect()
    }
}

/// Collects parts while a frame is put together.
#[derive(Debug, Default)]
pub(super) struct Parts(pub(super) Vec<Part>);

impl Parts {
    /// Notes a part and answers it, to be placed inside the element of that id.
    pub(super) fn part(&mut self, id: impl Into<String>, inside: Markup) -> Markup {
        let html = inside.into_string();
        self.0.push(Part { id: id.into(), html: html.clone() });
        PreEscaped(html)
    }
}

/// What keeps AWS from being changed, on top of a page.
pub(super) fn held(sync: &SyncView) -> Markup {
    html! {
        @for sentence in &sync.held_because {
            div.notice.warn role="note" { p { (sentence) } }
        }
    }
}

/// A phase as a sign and a word.
pub(super) fn badge(phase: Phase) -> Markup {
    look_badge(Look::Of(phase), phase.word())
}

/// Any look as a sign and a word.
pub(super) fn look_badge(look: Look, word: &str) -> Markup {
    html! { span class={ "badge " (look.class()) } { span.sign aria-hidden="true" { (look.sign()) } (word) } }
}

/// A moment: absolute here, relative once the script has seen it.
pub(super) fn moment(at: Timestamp) -> Markup {
    html! { time datetime=(at) { (at.strftime("%Y-%m-%d %H:%M:%S UTC")) } }
}

/// The page of an instance.
pub(super) fn cluster_path(key: &ObjectKey) -> String {
    let namespace = if key.namespace.is_empty() { "_".to_owned() } else { segment(&key.namespace) };
    format!("/clusters/{namespace}/{}/{}", segment(&key.kind), segment(&key.name))
}

/// A text as an element id: letters, digits and `-` only, different texts stay different.
pub(super) fn element_id(prefix: &str, text: &str) -> String {
    let mut id = String::from(prefix);
    for letter in text.chars() {
        if letter.is_ascii_alphanumeric() || letter == '-' {
            id.push(letter);
        } else {
            id.push_str(&format!("_{:x}_", u32::from(letter)));
        }
    }
    id
}

/// Conditions as a table.
pub(super) fn conditions(list: &[Condition]) -> Markup {
    html! {
        @if !list.is_empty() {
            table.conditions {
                thead { tr { th scope="col" { "Condition" } th scope="col" { "Status" } th scope="col" { "Reason" } th scope="col" { "Message" } th scope="col" { "Since" } } }
                tbody {
                    @for condition in list {
                        tr {
                            th scope="row" { (condition.type_) }
                            td { (status_word(condition.status)) }
                            td { (condition.reason.as_deref().unwrap_or_default()) }
                            td.message { (condition.message.as_deref().unwrap_or_default()) }
                            td { @if let Some(at) = condition.last_transition_time { (moment(at)) } }
                        }
                    }
                }
            }
        }
    }
}

fn status_word(status: ConditionStatus) -> &'static str {
    match status {
        ConditionStatus::True => "True",
        ConditionStatus::False => "False",
        ConditionStatus::Unknown => "Unknown",
    }
}

/// How far something is, as a bar and as numbers.
pub(super) fn progress(done: usize, total: usize) -> Markup {
    html! {
        span.progress {
            progress value=(done) max=(total.max(1)) aria-label="resources ready" { (done) " of " (total) }
            span.count { (done) "/" (total) }
        }
    }
}
