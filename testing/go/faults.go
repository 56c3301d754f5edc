package portico

import (
	"context"
	"encoding/json"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

const faultsPath = "/portico/test-faults"

// For selects the requests that a fault affects. If it is empty, the fault affects every request for a resource.
type For struct {
	Verbs []string `json:"verbs,omitempty"`
	// Group is the API group; a pointer to an empty string is the core group.
	Group    *string `json:"apiGroup,omitempty"`
	Resource string  `json:"resource,omitempty"`
	// Subresource of the request; a pointer to an empty string matches the object itself only.
	Subresource *string `json:"subresource,omitempty"`
	Namespace   string  `json:"namespace,omitempty"`
	// Name of the object. Create requests have none.
	Name string `json:"name,omitempty"`
	User string `json:"user,omitempty"`
	// UserAgent is a prefix of the user agent.
	UserAgent string `json:"userAgent,omitempty"`
	// Times limits the number of requests that the fault affects; 0 is no limit.
	Times int `json:"-"`
}

// Fault is the effect on the selected requests.
type Fault struct {
	kind   string
	values map[string]any
}

// Latency delays requests.
func Latency(by time.Duration) Fault {
	return Fault{"latency", map[string]any{"milliseconds": by.Milliseconds()}}
}

// Status refuses requests with this HTTP status code: 409 is a conflict, 410 expired, also 429, 500, 503 and others.
func Status(code int) Fault { return Fault{"status", map[string]any{"code": code}} }

// DropRequest closes the connection before the request is handled.
func DropRequest() Fault { return Fault{"dropRequest", map[string]any{}} }

// DropAnswer handles the request, then closes the connection instead of responding.
func DropAnswer() Fault { return Fault{"dropAnswer", map[string]any{}} }

// CutWatch ends watches, including open ones.
func CutWatch() Fault { return Fault{"cutWatch", map[string]any{}} }

// ExpireWatch ends watches, including open ones, with an ERROR event of 410.
func ExpireWatch() Fault { return Fault{"expireWatch", map[string]any{}} }

// StaleReads serves gets and lists at the revision at which it is set, and pauses watches.
func StaleReads() Fault { return Fault{"staleReads", map[string]any{}} }

// With sets a parameter of the fault, such as reason, message, retryAfterSeconds, afterEvents or clean
// (docs/guides/testing-with-faults.md lists them).
func (f Fault) With(name string, value any) Fault {
	values := map[string]any{name: value}
	for other, value := range f.values {
		if other != name {
			values[other] = value
		}
	}
	return Fault{f.kind, values}
}

// SetFault is a fault that is set on the server.
type SetFault struct {
	server *Server
	path   string
}

// Fault sets a fault. If the server refuses it, the test of Start fails; a server of New has no test, so Fault panics.
func (s *Server) Fault(fault Fault, requests For) *SetFault {
	set, err := s.SetFault(fault, requests)
	if err != nil {
		s.fail(err)
	}
	return set
}

func (s *Server) fail(err error) {
	if s.t == nil {
		panic(err)
	}
	s.t.Helper()
	s.t.Fatal(err)
}

// SetFault sets a fault.
func (s *Server) SetFault(fault Fault, requests For) (*SetFault, error) {
	rule := map[string]any{"match": requests, "fault": map[string]any{fault.kind: fault.values}}
	if requests.Times > 0 {
		rule["times"] = requests.Times
	}
	body, err := json.Marshal(rule)
	if err != nil {
		return nil, err
	}
	var listed struct{ ID string }
	request := s.faults.Post().AbsPath(faultsPath).SetHeader("Content-Type", "application/json").Body(body)
	if err := answer(request, &listed); err != nil {
		return nil, err
	}
	return &SetFault{s, faultsPath + "/" + listed.ID}, nil
}

// ClearFaults removes all faults.
func (s *Server) ClearFaults() error {
	return s.faults.Delete().AbsPath(faultsPath).Do(context.Background()).Error()
}

// Hits returns the number of requests that the fault has affected. It reports an error as Fault does.
func (f *SetFault) Hits() int { return f.hits(f.server.faults.Get()) }

// Remove removes the fault and returns the number of requests that it has affected. It reports an error as Fault does.
func (f *SetFault) Remove() int { return f.hits(f.server.faults.Delete()) }

func (f *SetFault) hits(request *rest.Request) int {
	var listed struct{ Hits int }
	if err := answer(request.AbsPath(f.path), &listed); err != nil {
		f.server.fail(err)
	}
	return listed.Hits
}

// Decodes a JSON response. An error contains the server's message.
func answer(request *rest.Request, into any) error {
	result := request.Do(context.Background())
	if err := result.Error(); err != nil {
		return err
	}
	body, err := result.Raw()
	if err != nil {
		return err
	}
	return json.Unmarshal(body, into)
}

// A client without a rate limit.
func faultsClient(config *rest.Config) (rest.Interface, error) {
	config = rest.CopyConfig(config)
	config.GroupVersion, config.NegotiatedSerializer = &schema.GroupVersion{Version: "v1"}, scheme.Codecs.WithoutConversion()
	config.QPS = -1
	return rest.RESTClientFor(config)
}
