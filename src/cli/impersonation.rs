//! The flags with which a verb acts as another user of the cluster.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;

use crate::lifecycle::kubernetes::Impersonation;

/// Flags that impersonate another user.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Cluster")]
pub(super) struct ImpersonationFlags {
    /// User to act as, such as `system:serviceaccount:NAMESPACE:NAME`; needs the right to impersonate
    #[arg(long = "as", value_name = "USER", value_parser = NonEmptyStringValueParser::new())]
    as_user: Option<String>,
    /// Group of the user to act as; repeat for several
    #[arg(long = "as-group", value_name = "GROUP", requires = "as_user", value_parser = NonEmptyStringValueParser::new())]
    as_group: Vec<String>,
}

impl From<ImpersonationFlags> for Impersonation {
    fn from(flags: ImpersonationFlags) -> Self {
        Self { user: flags.as_user, groups: flags.as_group }
    }
}
