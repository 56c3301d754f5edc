//! Runs the command blocks of the pages that newcomers read first.

crate::documentation::pages! {
    the_readme_works_when_copied {
        file: "README.md",
        needs: ["kubectl"],
        prints: [
            "portico is ready in",
            "color: blue",
            "customresourcedefinition.apiextensions.k8s.io/tunnels.product.example.com condition met",
            "uplink   1500",
            "v1alpha1 is reachable",
            "configmap/settings created",
        ],
    }
    the_tour_works_when_copied {
        file: "docs/quickstart.md",
        needs: ["kubectl"],
        prints: [
            "color: blue",
            "uplink   1500",
            "MTU of at least 576",
            "refused",
            "portico:admin",
            "fails at dial",
            "configmap/settings created",
            "unavailable",
        ],
    }
    the_examples_work_when_copied {
        file: "examples/README.md",
        needs: ["kubectl"],
        prints: ["6 documents in 4 files: 0 errors", "uplink   1500", "condition met", "No resources found"],
    }
}
