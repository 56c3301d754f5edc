//! Parses the user to impersonate from header fields.

use std::collections::BTreeMap;

use portico_gostd::strconv::quote;
use portico_machinery::Status;

use crate::headers::{self, ExtraFields, HeaderValues, NotUtf8};

pub(super) const USER: &str = "Impersonate-User";

pub(super) const GROUP: &str = "Impersonate-Group";

pub(super) const UID: &str = "Impersonate-Uid";

pub(super) const EXTRA_PREFIX: &str = "Impersonate-Extra-";

/// User that the caller wants to impersonate, as in the headers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImpersonationRequest {
    /// User name; never empty.
    pub user: String,
    /// User ID, often empty.
    pub uid: String,
    /// Groups in the order of the headers.
    pub groups: Vec<String>,
    /// Extra fields, with keys decoded and in lower case.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl ImpersonationRequest {
    /// Parses the `Impersonate-*` fields; `None` if there is no user to impersonate. The first value of a repeated user or
    /// uid is used.
    ///
    /// # Errors
    /// 400 if a group, uid or extra field is present without a user, or if a field is not UTF-8: without that field, the
    /// request would run as another user than the requested one.
    pub fn from_headers(fields: &dyn HeaderValues) -> Result<Option<Self>, Box<Status>> {
        let requested =
            Self::read(fields).map_err(|error| Box::new(Status::bad_request(error.to_string())))?;
        if !requested.user.is_empty() {
            return Ok(Some(requested));
        }
        if requested.has_only_user() {
            return Ok(None);
        }
        let message = format!("requested {} without impersonating a user name", requested.to_go_syntax());
        Err(Box::new(Status::bad_request(message)))
    }

    fn read(fields: &dyn HeaderValues) -> Result<Self, NotUtf8> {
        let first = |name| Ok(fields.values(name)?.into_iter().next().unwrap_or_default());
        let mut extra = ExtraFields::default();
        fields.visit(&mut |name, value| {
            if let Some(key) = headers::after_prefix(name, EXTRA_PREFIX) {
                extra.insert(name, key, value);
            }
        });
        Ok(Self {
            user: first(USER)?,
            uid: first(UID)?,
            groups: fields.values(GROUP)?,
            extra: extra.finish()?,
        })
    }

    /// Formats the user as Go prints a `*user.DefaultInfo` with `%#v`.
    fn to_go_syntax(&self) -> String {
        let list = |values: &[String]| values.iter().map(|value| quote(value)).collect::<Vec<_>>().join(", ");
        let groups = match self.groups.as_slice() {
            [] => "(nil)".to_owned(),
            groups => format!("{{{}}}", list(groups)),
        };
        let field =
            |(key, values): (&String, &Vec<String>)| format!("{}:[]string{{{}}}", quote(key), list(values));
        let extra = match self.extra.is_empty() {
            true => "(nil)".to_owned(),
            false => format!("{{{}}}", self.extra.iter().map(field).collect::<Vec<_>>().join(", ")),
        };
        let (user, uid) = (quote(&self.user), quote(&self.uid));
        format!(
            "&user.DefaultInfo{{Name:{user}, UID:{uid}, Groups:[]string{groups}, Extra:map[string][]string{extra}}}"
        )
    }

    pub(super) fn has_only_user(&self) -> bool {
        self.uid.is_empty() && self.groups.is_empty() && self.extra.is_empty()
    }
}
