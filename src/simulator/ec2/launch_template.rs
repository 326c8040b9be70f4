//! Launch templates and their versions. The data is kept as the caller wrote it and given back under the names
//! of the answer.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::resource::{Lens, Meta, Resource, find, find_mut, invalid, missing, one, resource_names};
use super::{Desk, State, resource};
use crate::simulator::call::{Answer, ApiError, Parameters, iso};

/// A launch template.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct LaunchTemplate {
    meta: Meta,
    pub(super) name: String,
    creator: String,
    pub(super) default_version: u64,
    latest_version: u64,
    versions: BTreeMap<u64, Version>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Version {
    description: Option<String>,
    created: Timestamp,
    creator: String,
    /// As the parameters had it.
    data: Value,
}

impl LaunchTemplate {
    pub(super) fn id(&self) -> &str {
        &self.meta.id
    }

    /// A version by number, `$Latest` or `$Default`.
    fn number(&self, text: &str) -> Result<u64, ApiError> {
        let number = match text {
            "$Latest" => Some(self.latest_version),
            "$Default" => Some(self.default_version),
            text => text.parse().ok(),
        };
        number.filter(|number| self.versions.contains_key(number)).ok_or_else(|| {
            let message = format!(
                "Could not find the specified version {text} for the launch template with ID {}.",
                self.meta.id
            );
            ApiError::bad("InvalidLaunchTemplateId.VersionNotFound", message)
        })
    }

    fn version_view(&self, number: u64, version: &Version) -> Value {
        json!({
            "launchTemplateId": self.meta.id,
            "launchTemplateName": self.name,
            "versionNumber": number,
            "versionDescription": version.description,
            "createTime": iso(version.created),
            "createdBy": version.creator,
            "defaultVersion": number == self.default_version,
            "launchTemplateData": answer_names("LaunchTemplateData", &version.data),
        })
    }
}

/// Lists whose name in an answer is not the parameter's with `Set`.
fn list_name(parent: &str, parameter: &str) -> String {
    match (parent, parameter) {
        ("LaunchTemplateData", "LicenseSpecification") => "licenseSet".into(),
        ("NetworkInterface", "SecurityGroupId") => "groupSet".into(),
        (_, other) => format!("{}Set", lower_first(other)),
    }
}

fn lower_first(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map(|first| first.to_ascii_lowercase().to_string() + letters.as_str()).unwrap_or_default()
}

/// Parameters under the names that answers use.
fn answer_names(parent: &str, data: &Value) -> Value {
    match data {
        Value::Object(map) => {
            let named = map.iter().map(|(name, value)| {
                let shown = if value.is_array() { list_name(parent, name) } else { lower_first(name) };
                (shown, answer_names(name, value))
            });
            Value::Object(named.collect::<Map<_, _>>())
        }
        Value::Array(items) => items.iter().map(|item| answer_names(parent, item)).collect(),
        scalar => scalar.clone(),
    }
}

impl Resource for LaunchTemplate {
    resource_names!("launch-template", "lt", "LaunchTemplateId", "InvalidLaunchTemplateId.NotFound");

    fn attribute(&self, name: &str, _lens: &Lens<'_>) -> Option<Vec<String>> {
        match name {
            "launch-template-name" => one(&self.name),
            "create-time" => one(iso(self.meta.created)),
            _ => None,
        }
    }

    fn view(&self, _lens: &Lens<'_>) -> Value {
        json!({
            "launchTemplateId": self.meta.id,
            "launchTemplateName": self.name,
            "createTime": iso(self.meta.created),
            "createdBy": self.creator,
            "defaultVersionNumber": self.default_version,
            "latestVersionNumber": self.latest_version,
            "tagSet": self.meta.tags.view(),
        })
    }
}

/// The template of a call, by id or name.
fn chosen<'a>(desk: &'a Desk<'_>) -> Result<&'a LaunchTemplate, ApiError> {
    match (desk.call.text("LaunchTemplateId"), desk.call.text("LaunchTemplateName")) {
        (Some(id), None) => find(&desk.state.launch_templates, id),
        (None, Some(name)) => by_name(desk.state, name),
        (None, None) => Err(missing("LaunchTemplateId")),
        (Some(_), Some(_)) => {
            let message = "Give the launch template's id or its name, not both";
            Err(ApiError::bad("InvalidParameterCombination", message))
        }
    }
}

fn by_name<'a>(state: &'a State, name: &str) -> Result<&'a LaunchTemplate, ApiError> {
    state.launch_templates.values().find(|template| template.name == name).ok_or_else(|| {
        let message = format!("The specified launch template, with template name {name}, does not exist.");
        ApiError::bad("InvalidLaunchTemplateName.NotFoundException", message)
    })
}

/// Answers CreateLaunchTemplate.
pub(super) fn create(desk: &mut Desk<'_>) -> Answer {
    let id = match desk.made_before()? {
        Some(id) => id,
        None => {
            let name = desk.required("LaunchTemplateName")?.to_owned();
            let data = data(desk)?;
            if by_name(desk.state, &name).is_ok() {
                let message = "Launch template name already in use.";
                return Err(ApiError::bad("InvalidLaunchTemplateName.AlreadyExistsException", message));
            }
            let meta = desk.meta::<LaunchTemplate>()?;
            let id = meta.id.clone();
            let creator = desk.call.principal.arn.clone();
            let first = Version {
                description: desk.call.text("VersionDescription").map(str::to_owned),
                created: desk.call.now,
                creator: creator.clone(),
                data,
            };
            let versions = BTreeMap::from([(1, first)]);
            let template =
                LaunchTemplate { meta, name, creator, default_version: 1, latest_version: 1, versions };
            desk.state.launch_templates.insert(id.clone(), template);
            desk.remember_token(&id);
            id
        }
    };
    let view = find(&desk.state.launch_templates, &id)?.view(&desk.lens());
    Ok(json!({ "launchTemplate": view }))
}

fn data(desk: &Desk<'_>) -> Result<Value, ApiError> {
    match desk.call.member("LaunchTemplateData") {
        data @ Value::Object(_) => Ok(data.clone()),
        _ => Err(missing("LaunchTemplateData")),
    }
}

/// Answers CreateLaunchTemplateVersion: a source version gives what the new data leaves out.
pub(super) fn create_version(desk: &mut Desk<'_>) -> Answer {
    let template = chosen(desk)?;
    let id = template.meta.id.clone();
    let mut merged = match desk.call.text("SourceVersion") {
        Some(source) => {
            let number = template.number(source)?;
            template.versions.get(&number).map(|version| version.data.clone()).unwrap_or_default()
        }
        None => json!({}),
    };
    if let (Value::Object(merged), Value::Object(given)) = (&mut merged, data(desk)?) {
        merged.extend(given);
    }
    let version = Version {
        description: desk.call.text("VersionDescription").map(str::to_owned),
        created: desk.call.now,
        creator: desk.call.principal.arn.clone(),
        data: merged,
    };
    let template = find_mut(&mut desk.state.launch_templates, &id)?;
    template.latest_version += 1;
    let number = template.latest_version;
    let view = template.version_view(number, &version);
    template.versions.insert(number, version);
    Ok(json!({ "launchTemplateVersion": view }))
}

/// Answers DescribeLaunchTemplates.
pub(super) fn describe(desk: &mut Desk<'_>) -> Answer {
    let names = desk.call.texts("LaunchTemplateName");
    for name in &names {
        by_name(desk.state, name)?;
    }
    let mut answer = resource::describe(desk, |state| &state.launch_templates, "launchTemplates")?;
    if let Some(Value::Array(found)) = answer.get_mut("launchTemplates")
        && !names.is_empty()
    {
        found
            .retain(|template| template.text("launchTemplateName").is_some_and(|name| names.contains(&name)));
    }
    Ok(answer)
}

/// Answers DescribeLaunchTemplateVersions, newest first.
pub(super) fn describe_versions(desk: &mut Desk<'_>) -> Answer {
    let template = chosen(desk)?;
    let wanted = desk.call.texts("LaunchTemplateVersion");
    let numbers: Vec<u64> = if wanted.is_empty() {
        template.versions.keys().rev().copied().collect()
    } else {
        wanted.into_iter().map(|text| template.number(text)).collect::<Result<_, _>>()?
    };
    let views: Vec<Value> = numbers
        .into_iter()
        .filter_map(|number| Some(template.version_view(number, template.versions.get(&number)?)))
        .collect();
    Ok(json!({ "launchTemplateVersionSet": views }))
}

/// Answers ModifyLaunchTemplate: the default version.
pub(super) fn modify(desk: &mut Desk<'_>) -> Answer {
    let template = chosen(desk)?;
    let id = template.meta.id.clone();
    let number = template.number(desk.required("SetDefaultVersion")?)?;
    find_mut(&mut desk.state.launch_templates, &id)?.default_version = number;
    let view = find(&desk.state.launch_templates, &id)?.view(&desk.lens());
    Ok(json!({ "launchTemplate": view }))
}

/// Answers DeleteLaunchTemplate.
pub(super) fn delete(desk: &mut Desk<'_>) -> Answer {
    let template = chosen(desk)?;
    let (id, view) = (template.meta.id.clone(), template.view(&desk.lens()));
    desk.state.launch_templates.remove(&id);
    Ok(json!({ "launchTemplate": view }))
}

/// Answers DeleteLaunchTemplateVersions: each version for itself; the default one stays.
pub(super) fn delete_versions(desk: &mut Desk<'_>) -> Answer {
    let template = chosen(desk)?;
    let (id, name, default) = (template.meta.id.clone(), template.name.clone(), template.default_version);
    let wanted = desk.call.texts("LaunchTemplateVersion");
    if wanted.is_empty() {
        return Err(missing("LaunchTemplateVersion"));
    }
    let (mut deleted, mut kept) = (Vec::new(), Vec::new());
    for text in wanted {
        let number: u64 = text.parse().map_err(|_| invalid(format!("{text} is not a version number")))?;
        let template = find_mut(&mut desk.state.launch_templates, &id)?;
        let mut line = json!({ "launchTemplateId": id, "launchTemplateName": name, "versionNumber": number });
        if number != default && template.versions.remove(&number).is_some() {
            deleted.push(line);
        } else if let Value::Object(map) = &mut line {
            let code = if number == default {
                "launchTemplateVersionIsDefault"
            } else {
                "launchTemplateVersionDoesNotExist"
            };
            map.insert(
                "responseError".into(),
                json!({ "code": code, "message": format!("version {number} stays") }),
            );
            kept.push(line);
        }
    }
    Ok(json!({
        "successfullyDeletedLaunchTemplateVersionSet": deleted,
        "unsuccessfullyDeletedLaunchTemplateVersionSet": kept,
    }))
}
