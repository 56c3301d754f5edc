// Command gostd records results of Go's standard library and apimachinery, as tables for the tests of machinery.
//
//	go run ./gostd parse_query > ../../machinery/gostd/testdata/parse_query.jsonl
//	go run ./gostd quantities > ../../machinery/gostd/testdata/quantities.jsonl
//
// Each line is a JSON object. The inputs are deterministic, so that a new Go version shows as a difference.
package main

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"net/url"
	"os"
	"strings"
)

var tables = map[string]func(*json.Encoder) error{
	"accepts":         accepts,
	"addresses":       addresses,
	"durations":       durations,
	"errnos":          errnos,
	"field_selectors": fieldSelectors,
	"json_numbers":    jsonNumbers,
	"label_selectors": labelSelectors,
	"media_types":     mediaTypes,
	"parse_query":     parseQuery,
	"quantities":      quantities,
	"quoted":          quoted,
	"request_uris":    requestURIs,
	"times":           times,
}

func main() {
	if len(os.Args) != 2 || tables[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: gostd TABLE")
		os.Exit(2)
	}
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	if err := tables[os.Args[1]](out); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// parseQuery records the encoded result of url.ParseQuery: pairs sorted by key, so that every parsed pair is
// visible, and bytes that are not UTF-8 stay escaped.
func parseQuery(out *json.Encoder) error {
	queries := []string{
		"", "&", "=", "a", "a=", "=b", "a=b=c", ";", "a;b", "a=1;b=2&c=3", "%", "a=%", "a=%4", "a=%zz&b=1", "%zz=1",
		"a=%41", "a=%e4", "a=%FF", "a=+", "a=%2B", "a=%20", "+=+", "a=1&a=2&A=3", "&&a=1&&", "a=%00", "a=#", "a=?",
		"fieldSelector=metadata.name%3Dallowed,x%3D;", "fieldSelector=metadata.name%3Dallowed,x%3D%zz",
		"fieldSelector=metadata.name%3Dallowed,x%3D%", "watch=1;", "watch=1;&watch=0", "watch;=1", "w%61tch=1",
		"labelSelector=a%3Db%3B", "a=%3b", "a%3db=c", "a==", "a=%25zz", "ä=ö", "a=\u00a0",
	}
	source := rand.New(rand.NewSource(1))
	alphabet := []string{"a", "b", "=", "&", ";", "+", "%", "%4", "%41", "%3D", "%26", "%zz", "%3b", "%fF", " ", "é", "/", "?"}
	for range 800 {
		var query strings.Builder
		for range 1 + source.Intn(9) {
			query.WriteString(alphabet[source.Intn(len(alphabet))])
		}
		queries = append(queries, query.String())
	}
	for _, query := range queries {
		values, _ := url.ParseQuery(query)
		if err := out.Encode(map[string]string{"query": query, "encoded": values.Encode()}); err != nil {
			return err
		}
	}
	return nil
}
