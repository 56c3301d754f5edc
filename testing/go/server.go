// Package portico runs a Kubernetes API server for tests, with faults on request.
package portico

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Timeout for start and stop. Generous, because test machines can be busy.
const timeout = 60 * time.Second

// Server is a running server. It exits when its standard input closes, at the latest with the test process.
type Server struct {
	t       testing.TB
	process *exec.Cmd
	input   io.Closer
	config  *rest.Config
	faults  rest.Interface
	ready   struct{ URL, Kubeconfig, Certs string }
}

// Start starts a server with additional flags of Portico, and stops it with the test. It fails the test if the server does not start.
func Start(t testing.TB, flags ...string) *Server {
	t.Helper()
	server, err := New(flags...)
	if err != nil {
		t.Fatal(err)
	}
	server.t = t
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	return server
}

// New starts a server with additional flags of Portico, for TestMain. The caller stops it with Stop.
func New(flags ...string) (*Server, error) {
	program := os.Getenv("PORTICO_BIN")
	if program == "" {
		program = "portico"
	}
	arguments := append([]string{"run", "--ephemeral", "--test-faults", "--exit-with-stdin", "--ready-format", "json", "-v", "error"}, flags...)
	server := &Server{process: exec.Command(program, arguments...)}
	server.process.Stderr = os.Stderr
	input, err := server.process.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := server.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	server.input = input
	if err := server.process.Start(); err != nil {
		return nil, fmt.Errorf("cannot start %s: %w; install portico on the PATH or set PORTICO_BIN", program, err)
	}
	if err := server.wait(output); err != nil {
		_ = server.process.Process.Kill()
		_ = server.process.Wait()
		return nil, fmt.Errorf("%s did not become ready: %w", program, err)
	}
	return server, nil
}

func (s *Server) wait(output io.Reader) error {
	late := time.AfterFunc(timeout, func() { _ = s.process.Process.Kill() })
	line, err := bufio.NewReader(output).ReadBytes('\n')
	late.Stop()
	if err != nil {
		return err
	}
	if err := json.Unmarshal(line, &s.ready); err != nil {
		return err
	}
	if s.config, err = clientcmd.BuildConfigFromFlags("", s.ready.Kubeconfig); err != nil {
		return err
	}
	s.faults, err = faultsClient(s.config)
	return err
}

// Stop stops the server and removes its data.
func (s *Server) Stop() error {
	if err := s.input.Close(); err != nil {
		return err
	}
	late := time.AfterFunc(timeout, func() { _ = s.process.Process.Kill() })
	defer late.Stop()
	return s.process.Wait()
}

// Config returns a copy of an administrator's configuration.
func (s *Server) Config() *rest.Config { return rest.CopyConfig(s.config) }

// Kubeconfig returns the path of an administrator's kubeconfig.
func (s *Server) Kubeconfig() string { return s.ready.Kubeconfig }

// URL returns https://HOST:PORT.
func (s *Server) URL() string { return s.ready.URL }

// Certs returns the folder with internal-ca.crt, admin.crt and admin.key.
func (s *Server) Certs() string { return s.ready.Certs }
