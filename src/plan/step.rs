//! A step is exactly one mutating call, described before it is made.
//!
//! Steps are what a manager's pure `diff` answers. The executor performs them, `plan` prints them,
//! tests compare them: all three see the same value.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::api::ObjectKey;

/// What a step does to AWS, which decides how carefully it is performed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Operation {
    /// Brings a new AWS object into being: needs a durable intent before the call.
    Create,
    /// Sets a state: doing it twice is doing it once.
    Update,
    /// Removes an AWS object, or part of one.
    Delete,
}

/// One argument of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Argument {
    /// Known when the plan is made.
    Known(Value),
    /// Comes out of an earlier step of the same plan, e.g. the id that a create answers.
    FromStep {
        /// Index of the step in the plan.
        step: usize,
        /// Name of the output, e.g. `vpcID`.
        output: String,
    },
}

impl<T: Into<Value>> From<T> for Argument {
    fn from(value: T) -> Self {
        Self::Known(value.into())
    }
}

/// One mutating AWS call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// The object whose reconciliation asks for it.
    pub object: ObjectKey,
    /// AWS's name of the call, e.g. `CreateVpc`.
    pub call: String,
    /// What the call does.
    pub operation: Operation,
    /// Its arguments, named and shaped as in the ACK spec where they come from there.
    pub arguments: BTreeMap<String, Argument>,
    /// What it changes, for people: `create VPC 10.0.0.0/16`, `set tag Name`.
    pub summary: String,
}

impl Step {
    /// Describes a call without arguments yet.
    pub fn new(object: &ObjectKey, call: &str, operation: Operation, summary: impl Into<String>) -> Self {
        Self {
            object: object.clone(),
            call: call.into(),
            operation,
            arguments: BTreeMap::new(),
            summary: summary.into(),
        }
    }

    /// Adds an argument; null is left out.
    pub fn with(mut self, name: &str, argument: impl Into<Argument>) -> Self {
        let argument = argument.into();
        if argument != Argument::Known(Value::Null) {
            self.arguments.insert(name.into(), argument);
        }
        self
    }

    /// Adds an argument that an earlier step of the plan answers.
    pub fn with_output_of(self, name: &str, step: usize, output: &str) -> Self {
        self.with_argument(name, Argument::FromStep { step, output: output.into() })
    }

    fn with_argument(mut self, name: &str, argument: Argument) -> Self {
        self.arguments.insert(name.into(), argument);
        self
    }

    /// The value of a known argument; null when it is absent or not known yet.
    pub fn argument(&self, name: &str) -> &Value {
        match self.arguments.get(name) {
            Some(Argument::Known(value)) => value,
            _ => &Value::Null,
        }
    }

    /// The text of a known argument.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.argument(name).as_str()
    }

    /// The step with every argument known, given the outputs of the steps before it.
    ///
    /// # Errors
    /// Names the output that is missing.
    pub fn resolved(&self, outputs: &[Value]) -> Result<Self, MissingOutput> {
        let mut step = self.clone();
        for (name, argument) in &mut step.arguments {
            if let Argument::FromStep { step: index, output } = argument {
                let value = outputs.get(*index).and_then(|value| value.get(output.as_str())).cloned();
                let value = value.ok_or_else(|| MissingOutput {
                    call: self.call.clone(),
                    argument: name.clone(),
                    output: output.clone(),
                })?;
                *argument = Argument::Known(value);
            }
        }
        Ok(step)
    }
}

/// A step asks for an output that the step before it did not give.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{call} needs {argument}, but no earlier step answered {output}")]
pub struct MissingOutput {
    call: String,
    argument: String,
    output: String,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.call, self.summary)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn outputs_of_earlier_steps_become_arguments() {
        let key = ObjectKey::new("ec2.services.k8s.aws", "InternetGateway", "a", "b");
        let step = Step::new(&key, "AttachInternetGateway", Operation::Update, "attach")
            .with("vpc", "vpc-1")
            .with_output_of("internetGatewayID", 0, "internetGatewayID");
        let resolved = step.resolved(&[json!({"internetGatewayID": "igw-1"})]).unwrap();
        assert_eq!(resolved.text("internetGatewayID"), Some("igw-1"));
        assert!(step.resolved(&[json!({})]).is_err());
    }
}
