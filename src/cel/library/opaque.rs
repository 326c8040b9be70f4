//! Values that CEL itself does not know: addresses, quantities, versions.

/// Makes a CEL value of a type that can be compared and cloned; the name is what `type(x)` yields.
macro_rules! opaque {
    ($value:ty, $type_:ident, $name:literal) => {
        pub(super) static $type_: ::cel::common::types::Type =
            ::cel::common::types::Type::new_unspecified_type($name);

        impl ::cel::common::value::Val for $value {
            fn get_type(&self) -> &::cel::common::types::Type {
                &$type_
            }

            fn cel_type() -> &'static ::cel::common::types::Type {
                &$type_
            }

            fn equals(&self, other: &dyn ::cel::common::value::Val) -> bool {
                other.downcast_ref::<$value>().is_some_and(|other| self == other)
            }

            fn clone_as_boxed<'v>(&self) -> Box<dyn ::cel::common::value::Val + 'v> {
                Box::new(self.clone())
            }

            fn as_any(&self) -> Option<&dyn std::any::Any> {
                Some(self)
            }
        }

        impl ::cel::common::value::StaticVal for $value {}
    };
}

pub(super) use opaque;
