//! What the configuration wants only observed and a revision does not have.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::SyncSettings;
use crate::api::iam_role_selector::{self, IamRoleSelectorSpec};
use crate::api::{AccountId, GroupKind, Object, names};
use crate::config::Observe;
use crate::diagnostic::{Diagnostic, nearest};
use crate::fleet::{Checked, Tree};

/// The paths to observe that no file of a revision is at or below: what was meant by them is changed.
pub(super) fn paths<'a>(paths: &'a [String], files: &'a Tree) -> impl Iterator<Item = Diagnostic> + 'a {
    let missing = paths.iter().filter(|path| !files.keys().any(|file| Observe::covers(path, file)));
    missing.map(|path| {
        let above = |file: &'a String| {
            let ends = file.match_indices('/').map(|(at, _)| at).chain([file.len()]);
            ends.map(|at| &file[..at]).collect::<Vec<_>>()
        };
        let there: BTreeSet<&str> = files.keys().flat_map(above).collect();
        let help = match nearest(path, there) {
            Some(near) => format!("did you mean `{near}`? The configuration must name it as findings do"),
            None => "correct it in the configuration, or remove it there".to_owned(),
        };
        let message = format!("`observe.paths` lists `{path}`, but the repository has no such file or directory: nothing is observed for it");
        Diagnostic::warning("observes-nothing", message).with_help(help).bounded()
    })
}

/// The accounts to observe that no selector and no configuration names, and where nothing of the fleet lives:
/// what was meant by them is changed.
pub(super) fn accounts(
    settings: &SyncSettings,
    checked: &Checked,
    existing: &[Arc<Object>],
) -> Vec<Diagnostic> {
    let selector = GroupKind::new(names::ACK_GROUP, iam_role_selector::KIND);
    let all = checked.objects.iter().map(|(_, object)| object);
    // One that does not load now, or stays because it is used, goes on selecting.
    let all = all.chain(existing.iter().map(AsRef::as_ref));
    let mut there: BTreeSet<AccountId> = settings.own_accounts.iter().cloned().collect();
    for object in all {
        there.extend(if object.gvk().group_kind() == selector {
            IamRoleSelectorSpec::of(object).ok().and_then(|selector| selector.arn.account())
        } else {
            let owner = object.status().pointer("/ackResourceMetadata/ownerAccountID");
            owner.and_then(|owner| owner.as_str()?.parse().ok())
        });
    }
    let missing = settings.observed_accounts.iter().filter(|account| !there.contains(*account));
    let findings = missing.map(|account| {
        let help = match nearest(account.as_str(), there.iter().map(AccountId::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "correct it in the configuration, or remove it there".to_owned(),
        };
        let message = format!("`observe.accounts` lists `{account}`, but no IAMRoleSelector and no `aws.useOwnRoleIn` names that account: nothing is observed for it");
        Diagnostic::warning("observes-nothing", message).with_help(help)
    });
    findings.collect()
}
