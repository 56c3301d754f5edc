//! Minimum, maximum and ratio: checks of requests and limits against one item of a LimitRange.

use portico_machinery::{Cursor, Quantity};

use portico_validation::pod_spec::totals::{ResourceList, resource_list};

/// Requests and limits that are checked. Claims have no limits.
pub(super) struct CheckedAmounts {
    pub(super) requests: ResourceList,
    pub(super) limits: Option<ResourceList>,
}

/// Adds the violations of one item, sorted by resource name.
pub(super) fn check(limit: &Cursor<'_>, checked: &CheckedAmounts, errors: &mut Vec<String>) {
    let kind = limit.field("type").str();
    let each = |list: &str| resource_list(&limit.field(list));
    for (name, bound) in each("min") {
        errors.extend(minimum(kind, &name, &bound, checked));
    }
    for (name, bound) in each("max") {
        errors.extend(match &checked.limits {
            Some(limits) => maximum(kind, &name, &bound, &checked.requests, limits),
            None => maximum_request(kind, &name, &bound, &checked.requests),
        });
    }
    let Some(limits) = &checked.limits else { return };
    for (name, bound) in each("maxLimitRequestRatio") {
        errors.extend(ratio(kind, &name, &bound, &checked.requests, limits));
    }
}

/// Returns the three amounts in the smallest unit that can represent all of them.
fn to_common_unit(request: &Quantity, limit: &Quantity, bound: &Quantity) -> [i64; 3] {
    let all = [request, limit, bound];
    if all.iter().all(|quantity| quantity.value() <= Quantity::MAX_MILLI) {
        all.map(Quantity::milli_value)
    } else {
        all.map(Quantity::value)
    }
}

fn minimum(kind: &str, name: &str, bound: &Quantity, checked: &CheckedAmounts) -> Option<String> {
    let at_least = format!("minimum {name} usage per {kind} is {bound}");
    let limit = checked.limits.as_ref().and_then(|limits| limits.get(name));
    let Some(request) = checked.requests.get(name) else {
        return Some(format!("{at_least}.  No request is specified"));
    };
    let [requested, limit_value, least] = to_common_unit(request, limit.unwrap_or(&Quantity::ZERO), bound);
    if requested < least {
        return Some(format!("{at_least}, but request is {request}"));
    }
    limit.filter(|_| limit_value < least).map(|limit| format!("{at_least}, but limit is {limit}"))
}

fn maximum(
    kind: &str,
    name: &str,
    bound: &Quantity,
    requests: &ResourceList,
    limits: &ResourceList,
) -> Option<String> {
    let at_most = format!("maximum {name} usage per {kind} is {bound}");
    let Some(limit) = limits.get(name) else {
        return Some(format!("{at_most}.  No limit is specified"));
    };
    let request = requests.get(name);
    let [requested, limit_value, most] = to_common_unit(request.unwrap_or(&Quantity::ZERO), limit, bound);
    if limit_value > most {
        return Some(format!("{at_most}, but limit is {limit}"));
    }
    request.filter(|_| requested > most).map(|request| format!("{at_most}, but request is {request}"))
}

fn maximum_request(kind: &str, name: &str, bound: &Quantity, requests: &ResourceList) -> Option<String> {
    let at_most = format!("maximum {name} usage per {kind} is {bound}");
    let Some(request) = requests.get(name) else {
        return Some(format!("{at_most}.  No request is specified"));
    };
    let [requested, _, most] = to_common_unit(request, &Quantity::ZERO, bound);
    (requested > most).then(|| format!("{at_most}, but request is {request}"))
}

#[expect(clippy::cast_precision_loss, reason = "upstream compares ratios as such numbers")]
fn ratio(
    kind: &str,
    name: &str,
    bound: &Quantity,
    requests: &ResourceList,
    limits: &ResourceList,
) -> Option<String> {
    let at_most = format!("{name} max limit to request ratio per {kind} is {bound}");
    let amount_of = |amounts: &ResourceList| amounts.get(name).cloned().unwrap_or_default();
    let [requested, limit_value, _] = to_common_unit(&amount_of(requests), &amount_of(limits), bound);
    if requested == 0 {
        return Some(format!("{at_most}, but no request is specified or request is 0"));
    }
    if limit_value == 0 {
        return Some(format!("{at_most}, but no limit is specified or limit is 0"));
    }
    let observed = limit_value as f64 / requested as f64;
    let exceeds = if bound.value() <= Quantity::MAX_MILLI {
        observed * 1000.0 > bound.milli_value() as f64
    } else {
        observed > bound.value() as f64
    };
    exceeds.then(|| format!("{at_most}, but provided ratio is {observed:.6}"))
}

#[cfg(test)]
mod tests {
    use portico_machinery::Object;

    use super::*;

    fn errors(limit: &str, requests: &[(&str, &str)], limits: Option<&[(&str, &str)]>) -> Vec<String> {
        let limit = Object::from_json(limit.as_bytes()).unwrap();
        let read = |list: &[(&str, &str)]| -> ResourceList {
            list.iter().map(|(name, amount)| ((*name).to_owned(), amount.parse().unwrap())).collect()
        };
        let mut errors = Vec::new();
        let checked = CheckedAmounts { requests: read(requests), limits: limits.map(read) };
        check(&limit.cursor(), &checked, &mut errors);
        errors
    }

    #[test]
    fn each_violated_bound_is_reported_with_upstreams_message() {
        let container = r#"{"type":"Container","min":{"cpu":"100m"},"max":{"cpu":"2"},"maxLimitRequestRatio":{"cpu":"3"}}"#;
        assert!(errors(container, &[("cpu", "1")], Some(&[("cpu", "2")])).is_empty());
        assert_eq!(
            errors(container, &[], Some(&[])),
            [
                "minimum cpu usage per Container is 100m.  No request is specified",
                "maximum cpu usage per Container is 2.  No limit is specified",
                "cpu max limit to request ratio per Container is 3, but no request is specified or request is 0",
            ]
        );
        assert_eq!(
            errors(container, &[("cpu", "50m")], Some(&[("cpu", "3")])),
            [
                "minimum cpu usage per Container is 100m, but request is 50m",
                "maximum cpu usage per Container is 2, but limit is 3",
                "cpu max limit to request ratio per Container is 3, but provided ratio is 60.000000",
            ]
        );
        let claim = r#"{"type":"PersistentVolumeClaim","min":{"storage":"1Gi"},"max":{"storage":"5Gi"}}"#;
        assert_eq!(
            errors(claim, &[("storage", "6Gi")], None),
            ["maximum storage usage per PersistentVolumeClaim is 5Gi, but request is 6Gi"]
        );
        assert_eq!(
            errors(claim, &[("storage", "1Mi")], None),
            ["minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 1Mi"]
        );
    }
}
