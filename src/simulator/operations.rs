//! One table says what a service can do: it makes the list of operations and the dispatch, so that the two agree.

/// Defines `OPERATIONS` and `dispatch` of a service. Each row: effect, AWS's name, and the answer.
macro_rules! operations {
    (|$world:ident, $call:ident| $($effect:ident $name:literal => $answer:expr,)+) => {
        /// The operations that are known.
        pub(crate) const OPERATIONS: &[$crate::simulator::call::Operation] =
            &[$($crate::simulator::call::Operation::$effect($name)),+];

        /// Answers a call.
        pub(crate) fn dispatch(
            $world: &mut $crate::simulator::world::World,
            $call: &$crate::simulator::call::Call,
        ) -> $crate::simulator::call::Answer {
            match $call.operation.as_str() {
                $($name => $answer,)+
                other => Err($crate::simulator::call::ApiError::bad(
                    "InvalidAction",
                    format!("Could not find operation {other}"),
                )),
            }
        }
    };
}

pub(crate) use operations;
