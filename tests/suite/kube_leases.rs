//! Leader election by a Lease, as clients do it: plain updates with resource versions.

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::Client;
use kube::api::{Api, ObjectMeta, PostParams};
use portico_kit::tasks::TaskSet;
use portico_tests::{Portico, wait_until};

/// A candidate for leadership.
struct Candidate {
    name: &'static str,
    leases: Api<Lease>,
}

impl Candidate {
    fn new(name: &'static str, client: Client) -> Self {
        Self { name, leases: Api::namespaced(client, "kube-system") }
    }

    fn lease(&self) -> Lease {
        Lease {
            metadata: ObjectMeta { name: Some("leader".into()), ..ObjectMeta::default() },
            spec: Some(LeaseSpec {
                holder_identity: Some(self.name.into()),
                lease_duration_seconds: Some(15),
                lease_transitions: Some(0),
                ..LeaseSpec::default()
            }),
        }
    }

    /// Updates the lease that was read; returns false if another candidate has changed it since.
    async fn acquire(&self, seen: &Lease) -> bool {
        let mut lease = self.lease();
        lease.metadata = seen.metadata.clone();
        let before = seen.spec.clone().unwrap_or_default().lease_transitions.unwrap_or_default();
        lease.spec.get_or_insert_default().lease_transitions = Some(before + 1);
        is_success(self.leases.replace("leader", &PostParams::default(), &lease).await)
    }
}

/// Returns true if a write succeeded, false for a conflict; panics for other errors.
fn is_success(answer: kube::Result<Lease>) -> bool {
    match answer {
        Ok(_) => true,
        Err(kube::Error::Api(status)) if status.is_already_exists() || status.is_conflict() => false,
        Err(e) => panic!("{e}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_candidates_one_leads_until_the_other_takes_over() {
    let portico = Portico::start().await;
    let one = Candidate::new("one", portico.kube().await);
    let two = Candidate::new("two", portico.kube_as("admin"));
    let post = PostParams::default();
    let (first, second) = (one.lease(), two.lease());
    let (first, second) = tokio::join!(one.leases.create(&post, &first), two.leases.create(&post, &second));
    assert!(is_success(first) ^ is_success(second), "exactly one creation succeeds");
    let mut seen = one.leases.get("leader").await.unwrap();
    for round in 1..=20 {
        let (first, second) = tokio::join!(one.acquire(&seen), two.acquire(&seen));
        assert!(first ^ second, "round {round}: exactly one candidate acquires the lease");
        seen = two.leases.get("leader").await.unwrap();
        let spec = seen.spec.as_ref().unwrap();
        let leader = if first { "one" } else { "two" };
        assert_eq!((spec.holder_identity.as_deref(), spec.lease_transitions), (Some(leader), Some(round)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_updates_are_not_lost() {
    let portico = Portico::start().await;
    let client = portico.kube().await;
    let leases: Api<Lease> = Api::namespaced(client.clone(), "kube-system");
    leases.create(&PostParams::default(), &Candidate::new("none", client.clone()).lease()).await.unwrap();
    let tasks = TaskSet::new();
    for name in ["one", "two", "three"] {
        let candidate = Candidate::new(name, client.clone());
        tasks.spawn(name, async move {
            let mut terms = 0;
            while terms < 10 {
                let seen = candidate.leases.get("leader").await.unwrap();
                terms += i32::from(candidate.acquire(&seen).await);
            }
        });
    }
    wait_until("every candidate has led as often as required", async || tasks.running().is_empty()).await;
    assert_eq!(tasks.panics(), 0);
    assert_eq!(leases.get("leader").await.unwrap().spec.unwrap().lease_transitions, Some(30));
}
