//! CSIDriver: features of a driver. Attachment settings are immutable.

use std::collections::HashSet;

use portico_machinery::field::Error;
use portico_machinery::table::Cell;
use portico_machinery::{Cursor, Object};

use portico_registry::{RequestTime, Strategy, TableStrategy};
use portico_validation::Errors;
use portico_validation::checks;

/// Field whose feature gate is off: dropped unless the old object has it.
const GATED_FIELD: [&str; 2] = ["spec", "preventPodSchedulingIfMissing"];
const EXPIRATION_MIN: i64 = 600;
const EXPIRATION_MAX: i64 = 1 << 32;
const UNSET_WARNING: &str = "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible logging of tokens in volume attributes";

pub(crate) struct CsiDriver;

impl Strategy for CsiDriver {
    fn prepare_create(&self, new: &mut Object, _moment: RequestTime) {
        new.remove(&GATED_FIELD);
    }

    fn prepare_update(&self, new: &mut Object, old: &Object, _moment: RequestTime) {
        if !old.at(&GATED_FIELD).is_present() {
            new.remove(&GATED_FIELD);
        }
    }

    fn count_changes(&self, new: &mut Object, old: &Object) {
        // The first change sets the generation, even if the generation was set at creation.
        if !checks::is_same(&new.at(&["spec"]), &old.at(&["spec"])) {
            new.set(&["metadata", "generation"], old.generation() + 1);
        }
    }

    fn validate(&self, new: &Object, errors: &mut Errors) {
        let spec = new.at(&["spec"]);
        validate_token_requests(&spec.field("tokenRequests"), errors);
        checks::one_of(&spec.field("fsGroupPolicy"), &["File", "None", "ReadWriteOnceWithFSType"], errors);
        let modes = spec.field("volumeLifecycleModes");
        for mode in modes.items().filter(|m| !matches!(m.str(), "Persistent" | "Ephemeral")) {
            errors.push(Error::not_supported(&modes.path(), mode.str(), &["Persistent", "Ephemeral"]));
        }
        let period = spec.field("nodeAllocatableUpdatePeriodSeconds");
        if period.i64().is_some_and(|seconds| seconds < 10) {
            errors.push(period.invalid("must be greater than or equal to 10 seconds"));
        }
        let in_secrets = spec.field("serviceAccountTokenInSecrets");
        if in_secrets.is_present() && spec.field("tokenRequests").is_empty() {
            let text = "serviceAccountTokenInSecrets is set but no tokenRequests are specified";
            errors.push(in_secrets.invalid(text));
        }
    }

    fn validate_update(&self, new: &Object, old: &Object, errors: &mut Errors) {
        self.validate(new, errors);
        let (attach, attached) = (new.at(&["spec", "attachRequired"]), old.at(&["spec", "attachRequired"]));
        if !checks::is_same(&attach, &attached) {
            let path = "spec.attachedRequired".into();
            errors.push(Error::invalid_printed(&path, &attach.printed(), checks::IMMUTABLE));
        }
        let modes = ["spec", "volumeLifecycleModes"];
        checks::unchanged(&new.at(&modes), &old.at(&modes), errors);
    }

    fn warnings(&self, new: &Object, old: Option<&Object>) -> Vec<String> {
        let requests = ["spec", "tokenRequests"];
        let asks = !new.at(&requests).is_empty();
        let changed = old.is_none_or(|old| !checks::is_same(&new.at(&requests), &old.at(&requests)));
        let unset = !new.at(&["spec", "serviceAccountTokenInSecrets"]).is_present();
        if asks && changed && unset { vec![UNSET_WARNING.to_owned()] } else { Vec::new() }
    }
}

impl TableStrategy for CsiDriver {
    fn cell(&self, function: &str, object: &Object) -> Cell {
        let texts = |list: Cursor<'_>, field: &str| {
            let text = |item: Cursor<'_>| match field {
                "" => item.str().to_owned(),
                field => item.field(field).str().to_owned(),
            };
            list.items().map(text).collect::<Vec<_>>().join(",")
        };
        let spec = object.at(&["spec"]);
        match function {
            "csidriver-tokenrequests" if !spec.field("tokenRequests").is_present() => Cell::text("<unset>"),
            "csidriver-tokenrequests" => Cell::text(texts(spec.field("tokenRequests"), "audience")),
            "csidriver-modes" if spec.field("volumeLifecycleModes").is_empty() => Cell::text("<none>"),
            "csidriver-modes" => Cell::text(texts(spec.field("volumeLifecycleModes"), "")),
            "csidriver-attachrequired" => Cell::Bool(spec.field("attachRequired").opt_bool().unwrap_or(true)),
            "csidriver-podinfoonmount" => Cell::Bool(spec.field("podInfoOnMount").bool()),
            "csidriver-storagecapacity" => Cell::Bool(spec.field("storageCapacity").bool()),
            _ => Cell::Bool(spec.field("requiresRepublish").bool()),
        }
    }
}

fn validate_token_requests(requests: &Cursor<'_>, errors: &mut Errors) {
    let mut seen = HashSet::new();
    for request in requests.items() {
        let (audience, seconds) = (request.field("audience"), request.field("expirationSeconds"));
        checks::unique(&mut seen, &audience, errors);
        match seconds.i64() {
            Some(n) if n < EXPIRATION_MIN => {
                errors.push(seconds.invalid("may not specify a duration less than 10 minutes"));
            }
            Some(n) if n > EXPIRATION_MAX => {
                errors.push(seconds.invalid("may not specify a duration larger than 2^32 seconds"));
            }
            _ => {}
        }
    }
}
