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

// For says which requests a fault happens to, all for resources if it is empty, and how often.
type For struct {
	Verbs []string `json:"verbs,omitempty"`
	// Group is the API group; a pointer to an empty one is core.
	Group    *string `json:"apiGroup,omitempty"`
	Resource string  `json:"resource,omitempty"`
	// Subresource is that of the request; a pointer to an empty one is the object itself alone.
	Subresource *string `json:"subresource,omitempty"`
	Namespace   string  `json:"namespace,omitempty"`
	// Name is that of the object; requests to create have none.
	Name string `json:"name,omitempty"`
	User string `json:"user,omitempty"`
	// UserAgent is how it begins.
	UserAgent string `json:"userAgent,omitempty"`
	// Times is how often; 0 until the fault is removed.
	Times int `json:"-"`
}

// Fault is what happens.
type Fault struct {
	kind   string
	values map[string]any
}

// Latency lets requests be handled later.
func Latency(by time.Duration) Fault {
	return Fault{"latency", map[string]any{"milliseconds": by.Milliseconds()}}
}

// Status refuses requests: 409 is a conflict, 410 expired, 429, 500, 503 and so on.
func Status(code int) Fault { return Fault{"status", map[string]any{"code": code}} }

// DropRequest breaks the connection, and nothing was done.
func DropRequest() Fault { return Fault{"dropRequest", map[string]any{}} }

// DropAnswer does what is asked for, and breaks the connection in the place of the answer.
func DropAnswer() Fault { return Fault{"dropAnswer", map[string]any{}} }

// CutWatch breaks watches off, open ones, too.
func CutWatch() Fault { return Fault{"cutWatch", map[string]any{}} }

// ExpireWatch ends watches, open ones, too, with an event that says 410.
func ExpireWatch() Fault { return Fault{"expireWatch", map[string]any{}} }

// StaleReads lets gets and lists answer as of the moment in which it is set, and watches stand still.
func StaleReads() Fault { return Fault{"staleReads", map[string]any{}} }

// With sets a value by its name in docs/guides/testing-with-faults.md: reason, message, retryAfterSeconds, afterEvents, clean and so on.
func (f Fault) With(name string, value any) Fault {
	values := map[string]any{name: value}
	for other, value := range f.values {
		if other != name {
			values[other] = value
		}
	}
	return Fault{f.kind, values}
}

// SetFault is a fault that is set.
type SetFault struct {
	server *Server
	path   string
}

// Fault sets a fault. What is wrong fails the test.
func (s *Server) Fault(fault Fault, requests For) *SetFault {
	s.t.Helper()
	set, err := s.SetFault(fault, requests)
	if err != nil {
		s.t.Fatal(err)
	}
	return set
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

// Hits is to how many requests it has happened. What is wrong fails the test.
func (f *SetFault) Hits() int { return f.hits(f.server.faults.Get()) }

// Remove removes it, and says to how many requests it has happened. What is wrong fails the test.
func (f *SetFault) Remove() int { return f.hits(f.server.faults.Delete()) }

func (f *SetFault) hits(request *rest.Request) int {
	f.server.t.Helper()
	var listed struct{ Hits int }
	if err := answer(request.AbsPath(f.path), &listed); err != nil {
		f.server.t.Fatal(err)
	}
	return listed.Hits
}

// Reads an answer in JSON; an error has the server's words.
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

// A client whose own limits of requests do not slow tests down.
func faultsClient(config *rest.Config) (rest.Interface, error) {
	config = rest.CopyConfig(config)
	config.GroupVersion, config.NegotiatedSerializer = &schema.GroupVersion{Version: "v1"}, scheme.Codecs.WithoutConversion()
	config.QPS = -1
	return rest.RESTClientFor(config)
}
