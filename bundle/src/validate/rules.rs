//! The table of rules.

use super::Rule;

macro_rules! table {
    ($($module:ident)*) => {
        $(mod $module;)*
        /// Every rule, sorted by code.
        pub(super) static ALL: &[&Rule] = &[$(&$module::RULE),*];
    };
}

table! {
    csv_name_invalid
    csv_owned_crd_missing
    yaml_syntax
}
