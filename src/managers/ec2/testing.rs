//! An EC2 of a few lines, for the pure halves: steps become observations without any call.

use serde_json::{Value, json};

use crate::managers::fields::EXTENSION;
use crate::managers::{Desired, Manager, Observed, Refusal, tagging, testing};
use crate::plan::{Operation, Step};

/// A desired object of one of the kinds here.
pub(super) fn desired(kind: &str, spec: Value) -> Desired {
    testing::desired("ec2.services.k8s.aws", kind, spec)
}

/// What steps do to one object.
pub(super) struct Aws {
    manager: &'static dyn Manager,
    /// The object after its create call.
    born: fn(&Step) -> Observed,
    /// What any other step does to it.
    apply: fn(&Step, &mut Observed),
    pub(super) object: Option<Observed>,
}

impl Aws {
    pub(super) fn new(
        manager: &'static dyn Manager,
        born: fn(&Step) -> Observed,
        apply: fn(&Step, &mut Observed),
    ) -> Self {
        Self { manager, born, apply, object: None }
    }

    /// Brings the object to the desired state and checks that nothing is left to do. Answers the calls.
    pub(super) fn reach(&mut self, desired: &Desired) -> Result<Vec<Step>, Refusal> {
        let steps = self.manager.diff(desired, self.object.as_ref())?;
        let mut outputs = Vec::new();
        for (index, step) in steps.iter().enumerate() {
            let step = step.resolved(&outputs).unwrap();
            match &mut self.object {
                None => {
                    assert_eq!(
                        (index, step.operation),
                        (0, Operation::Create),
                        "a plan begins with its create call"
                    );
                    let mut born = (self.born)(&step);
                    born.tags = serde_json::from_value(step.argument("tags").clone()).unwrap();
                    outputs.push(born.status.clone());
                    self.object = Some(born);
                }
                Some(object) => {
                    assert_ne!(step.operation, Operation::Create, "one object has one create call");
                    match step.call.as_str() {
                        "CreateTags" => {
                            let tags: super::Tags =
                                serde_json::from_value(step.argument("tags").clone()).unwrap();
                            object.tags.extend(tags);
                        }
                        "DeleteTags" => {
                            let keys: Vec<String> =
                                serde_json::from_value(step.argument("keys").clone()).unwrap();
                            object.tags.retain(|key, _| !keys.contains(key));
                        }
                        _ => (self.apply)(&step, object),
                    }
                    outputs.push(json!({}));
                }
            }
        }
        let object = self.object.as_mut().unwrap();
        let mut remembering = desired.clone();
        remembering.status = object.status.clone();
        object.status[EXTENSION] = json!({ tagging::MEMORY: tagging::memory(&remembering, &object.tags) });
        let left = self.manager.diff(desired, self.object.as_ref())?;
        assert_eq!(left, [], "nothing is left to do after\n{steps:#?}");
        Ok(steps)
    }
}

/// The calls with what they say for people.
pub(super) fn shown(steps: &[Step]) -> String {
    steps.iter().map(|step| format!("{step}\n")).collect()
}
