package main

import (
	"encoding/json"
	"fmt"
	"math"
	"mime"
	"strconv"
	"strings"

	"github.com/munnerz/goautoneg"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	kjson "k8s.io/apimachinery/pkg/util/json"
)

// labelSelectors records the result of labels.Parse (requirements or error), and the labels that match.
func labelSelectors(out *json.Encoder) error {
	long, longer := strings.Repeat("x", 63), strings.Repeat("x", 64)
	fixed := []string{
		"", " ", ",", "a", "!a", "! a", "!!a", "a,", ",a", "a,,b", "a=b", "a==b", "a===b", "a!=b", "a!==b", "a=!b", "a = b", "a\t=\nb", "a=", "a==", "a!=", "a=,b", "=b", "!=b", "a b", "a=b c", "a=b=c", "a!b", "!a=b", "!a in (b)",
		"a in (b)", "a in (b,c)", "a in (c,b,c)", "a in ()", "a in (,)", "a in (,,)", "a in (b,)", "a in (,b)", "a in (b,,c)", "a in (,b,)", "a in b", "a in", "a in (", "a in (b", "a in (b,", "a in (b c)", "a in (b))", "a in ((b)", "a in (!b)", "a in (b=c)", "a in (=)", "a notin (b)", "a notin ()", "a notin b", "a NOTIN (b)", "a in(b)", "a in (in)", "a in (notin,in)", "in in (in)", "in", "notin", "in=in", "notin notin (notin)", "!in", "in,notin", "a=in", "a=notin",
		"a>1", "a<1", "a > -1", "a>x", "a>", "a<,b", "a>1.5", "a>+1", "a>9223372036854775807", "a>9223372036854775808", "a>-x", "a>1e3", "a>=1", "a=>1", "a<>b", "a>1,a<5", "a gt 1", "a exists", "a lt",
		"a=\x00", "a\x00=b", "\x00", "\x00a", "a,\x00b", "a, \x00b", "a=b\x00c", "a=b\x00,c", "a in (b\x00,c)", "a in (\x00)", "!\x00a", "!\x00=b", "=\x00=", "a=\x00=b", "a in\x00(b)",
		"-a=b", "a-=b", "a/b=c", "a.b/c=d", "/a=b", "a/=b", "a/b/c=d", "A/b=c", "a..b/c", "a=-", "a=b-", "a=b/c", "a=b:c", "a=\u00e9", "\u00e9=a", "a=\"b\"", "a='b'", "a in (-,_)", "a in (b,-c,\u00e9)", "a notin (-)", "a=b,c=-,d", "a=\x7f", "a=\x01", "a=b\\", "a\\=b", "a;b", "a&b", "a|b", "a=*",
		long + "=a", longer + "=a", "a=" + long, "a=" + longer, "a in (" + longer + ")", strings.Repeat("d", 253) + "/a", strings.Repeat("d", 254) + "/a", "c=1,b=2,a=3", "b,a,b!=1", "a=1,a=2", "z in (1),y notin (2),x", "()", "(a)", "a)", "a=(b)", "<", ">", "<a", "a<", "a=<", "a,!b,c=d,e!=f,g in (h),i notin (j),k>1,l<2",
	}
	pieces := []string{"a", "b", "c-d", "x.y/z", "=", "==", "!=", "!", "(", ")", ",", " in ", " notin ", "in", ">", "<", "1", "-1", " ", "-", "\u00e9", "\x00", "\t", "_"}
	sets := []string{`{}`, `{"a":"b"}`, `{"a":""}`, `{"a":"1","b":"c"}`, `{"a":"7","in":"in"}`, `{"a":"c","b":"-","c-d":"a","x.y/z":"b"}`}
	type requirement struct {
		Key      string   `json:"key"`
		Operator string   `json:"operator"`
		Values   []string `json:"values"`
	}
	type row struct {
		Text         string          `json:"text"`
		Error        string          `json:"error,omitempty"`
		Requirements []requirement   `json:"requirements,omitempty"`
		Matches      map[string]bool `json:"matches,omitempty"`
	}
	for _, text := range combined(fixed, pieces, 1500, 8, 7) {
		made := row{Text: text}
		selector, err := labels.Parse(text)
		if err != nil {
			made.Error = err.Error()
		} else {
			requirements, _ := selector.Requirements()
			for _, r := range requirements {
				made.Requirements = append(made.Requirements, requirement{r.Key(), string(r.Operator()), r.ValuesUnsorted()})
			}
			made.Matches = map[string]bool{}
			for _, set := range sets {
				var held labels.Set
				if err := json.Unmarshal([]byte(set), &held); err != nil {
					return err
				}
				made.Matches[set] = selector.Matches(held)
			}
		}
		if err := out.Encode(made); err != nil {
			return err
		}
	}
	return nil
}

// fieldSelectors records the result of fields.ParseSelector: its terms, or the error.
func fieldSelectors(out *json.Encoder) error {
	fixed := []string{
		"", ",", ",,", "a", "a=b", "a==b", "a!=b", "a===b", "a!==b", "a=b,c=d", "c=d,a=b", "a=1,a=2", "a=2,a=1", "a!=1,a=2", "a=", "=b", "=", "==", "!=", "!", "a!", "a!b=c", "a=b=c", "a=b\\=c", "a=b\\,c", "a=b\\\\", "a=b\\", "a=\\x", "a=\\", "a\\,b=c", "a\\=b=c", "a\\", "\\", "\\,", "a=b,", ",a=b", "a=b,,c=d", "a=b,c",
		"a =b", "a= b", " a=b", "a=b ", "metadata.name=x,metadata.namespace!=y", "a=\u00e9", "\u00e9=a", "a=\\\u00e9", "a=\x00", "\x00=a", "a=(b)", "a in (b)", "a>1", "a=b;c=d", "a=b&c", "a='b'", "a=\"b\"", "a=\\n", "a=%2C", "a=b\\\\,c=d", "a=b\\\\\\,c", "a!=b\\!", "a=b!=c", "a=b,a", strings.Repeat("a=b,", 50),
	}
	pieces := []string{"a", "b.c", "=", "==", "!=", "!", ",", "\\", "\\,", "\\=", "\\\\", " ", "x", "\u00e9"}
	type term struct {
		Field    string `json:"field"`
		Operator string `json:"operator"`
		Value    string `json:"value"`
	}
	type row struct {
		Text  string  `json:"text"`
		Error string  `json:"error,omitempty"`
		Terms []term  `json:"terms"`
		Exact *string `json:"exact"`
	}
	for _, text := range combined(fixed, pieces, 700, 8, 8) {
		made := row{Text: text, Terms: []term{}}
		selector, err := fields.ParseSelector(text)
		if err != nil {
			made.Error = err.Error()
		} else {
			for _, r := range selector.Requirements() {
				made.Terms = append(made.Terms, term{r.Field, string(r.Operator), r.Value})
			}
			if exact, found := selector.RequiresExactMatch("a"); found {
				made.Exact = &exact
			}
		}
		if err := out.Encode(made); err != nil {
			return err
		}
	}
	return nil
}

// mediaTypes records mime.ParseMediaType; parameters of RFC 2231 are omitted.
func mediaTypes(out *json.Encoder) error {
	fixed := []string{
		"", " ", ";", "a", "a/", "/b", "a/b", "A/B", " a/b ", "a /b", "a/ b", "a/b/c", "a/b c", "a/b,c/d", "application/json", "application/json; charset=utf-8", "application/json;charset=UTF-8", "application/json;", "application/json; ", "application/json;;", "application/json; ;", "application/json;charset", "application/json;charset=", "application/json;=utf-8", "application/json; charset = utf-8", "application/json;charset=\"utf-8\"", "application/json;charset=\"utf\\\"8\"", "application/json;charset=\"a\\b\"", "application/json;charset=\"a", "application/json;charset=\"a\"b", "application/json;charset=\"\"", "application/json;charset=a b",
		"application/json;a=1;a=1", "application/json;a=1;a=2", "application/json;A=1;a=2", "application/json;a=1;b=2;A=1", "application/json;a*=utf-8''x", "application/json;a*0=x;a*1=y", "application/json;a*=x;a*=y", "application/json, application/yaml", "application/json,application/json", "application/*", "*/*", "*", "application/json\t;\ta=b", "application/json;a=\u00e9", "application/\u00e9", "\u00c9/b", "a/b;\u00e9=c", "a/b;c=\"\u00e9\"", "a/b;c=\"d\re\"", "a/b;c=\"d\\\re\"", "a/b;c=(d)", "a/b;c=d/e", "a/b;c=d;e", "a/b;c=d;e=", "a/b;c=d;;e=f", "application/merge-patch+json", "application/apply-patch+yaml", "application/vnd.kubernetes.protobuf", "application/json;stream=watch", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", "text/plain; version=0.0.4; charset=utf-8", "a/b\u00a0", "\u00a0a/b", "a/b;\u00a0c=d", "a/b\x00", "a\x7f/b", "a:b", "a/b:c", "a@b/c", "a/b;c=d,e/f;g=h",
	}
	pieces := []string{"a", "B", "/", ";", "=", "\"", "\\", " ", ",", "charset", "utf-8", "*", "+", "\t", "\u00e9", ";a=", "x/y"}
	type row struct {
		Text    string            `json:"text"`
		Error   string            `json:"error,omitempty"`
		Essence string            `json:"essence,omitempty"`
		Params  map[string]string `json:"params"`
	}
	for _, text := range combined(fixed, pieces, 900, 8, 9) {
		made := row{Text: text, Params: map[string]string{}}
		essence, params, err := mime.ParseMediaType(text)
		if err != nil {
			made.Error = err.Error()
		} else {
			made.Essence = essence
			// A joined parameter has no star in its name: it is recognized by the text.
			if !strings.Contains(text, "*") || !strings.Contains(text, ";") {
				made.Params = params
			} else {
				for name, value := range params {
					if !strings.Contains(strings.ToLower(text), name+"*") {
						made.Params[name] = value
					}
				}
			}
		}
		if err := out.Encode(made); err != nil {
			return err
		}
	}
	return nil
}

// accepts records goautoneg.ParseAccept: the clauses in the order in which they are tried, at most as many as Go sorts by insertion.
// Numbers in hexadecimal and with underscores are omitted: they are refused, but still have a weight.
func accepts(out *json.Encoder) error {
	fixed := []string{
		"", " ", ",", "*", "*/*", "*/", "*//", "a", "a/", "a/b", "a/b/", "a/b/c", " a / b ", "A/B", "a/*", "*/b", "a/b;", "a/b;q", "a/b;q=", "a/b;q=0.5", "a/b; q=0.5", "a/b;q= 0.5", "a/b;q =0.5", "a/b;q=0.5 ", "a/b;q=\"0.5\"", "a/b;q=x", "a/b;q=-1", "a/b;q=7", "a/b;q=inf", "a/b;q=-Infinity", "a/b;q=nan,c/d", "c/d,a/b;q=NaN", "a/b;q=-nan,c/d;q=0.1", "a/b;q=1e400", "a/b;q=1e-400", "a/b;q=.5", "a/b;q=5.", "a/b;q=0.123456789012345", "a/b;Q=0.5,c/d",
		"a/b;c=d", "a/b;c=d;c=e", "a/b;c==", "a/b;c==d", "a/b;c=d=", "a/b;c=d=e", "a/b;=d", "a/b;c = d ", "a/b;c=\"d\"", "a/b;;c=d", "a/b\t", "a/b,\tc/d", "a/b;c=d,", ",a/b", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json", "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8", "*/*, a/b;q=0.1", "a/b;q=0.1, */*", "*/*;q=0.9,a/*;q=0.5,a/b;q=0.1", "a/b;q=0.1,a/*;q=0.5,*/*;q=0.9", "a/*,b/c;q=0.2,*/*;q=0.7,d/e;q=0.9", "a/b;q=0.2,c/d;q=0.3,e/f;q=0.1", "\u00e9/b",
	}
	pieces := []string{"a/b", "c/d", "*/*", "a/*", "*", ",", ", ", ";q=0.5", ";q=0.1", "; q=0.9", ";as=Table", ";", "=", " ", "/", "x"}
	type row struct {
		Text    string  `json:"text"`
		Clauses [][]any `json:"clauses"`
	}
	for _, text := range combined(fixed, pieces, 1200, 12, 10) {
		made := row{Text: text, Clauses: [][]any{}}
		clauses := goautoneg.ParseAccept(text)
		if len(clauses) > 12 {
			continue
		}
		for _, clause := range clauses {
			params := clause.Params
			if params == nil {
				params = map[string]string{}
			}
			weight := strconv.FormatFloat(clause.Q, 'f', -1, 32)
			weight = strings.ToLower(strings.TrimPrefix(weight, "+"))
			made.Clauses = append(made.Clauses, []any{clause.Type, clause.SubType, weight, params})
		}
		if err := out.Encode(made); err != nil {
			return err
		}
	}
	return nil
}

// jsonNumbers records the output of an untyped number that was parsed: in stored objects and in errors (%v).
func jsonNumbers(out *json.Encoder) error {
	fixed := []string{
		"0", "-0", "0.0", "-0.0", "1", "-1", "1.0", "1.5", "-1.5", "100", "1e2", "1E2", "1e+2", "1e-2", "1e18", "1e19", "1e20", "9.2e18", "9.3e18", "1e21", "-1e21", "1.5e21", "1e22", "1e100", "1e-5", "1e-6", "1e-7", "1.5e-7", "0.000001", "0.0000001", "-0.0000001", "1e-10", "1e-100", "1e308", "1.7976931348623157e308", "1.7976931348623159e308", "1e309", "-1e309", "1e400", "5e-324", "2e-324", "1e-400", "9007199254740991", "9007199254740992", "9007199254740993", "9007199254740993.0", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "18446744073709551615", "18446744073709551616", "123456789012345678901234567890", "0.1", "0.2", "0.30000000000000004", "3.141592653589793", "123456789.123456789", "100000000000000000000", "999999999999999999999", "1000000000000000000000", "4.35", "0.1e1", "10e-1", "1e0", "1.0e0", "33333333.33333333", "5e-7", "123e-8", "999999e-12",
		"01", "+1", ".5", "5.", "1.e2", "1e", "1e+", "0x10", "1_000", "NaN", "Infinity", "-", "--1", "1.5.5", "1 2", "- 1",
	}
	pieces := []string{"0", "1", "5", "9", "25", "99", "123456789", ".", "e", "e-", "e+", "-", "E1"}
	for _, text := range combined(fixed, pieces, 1500, 7, 11) {
		row := map[string]string{"text": text}
		var held map[string]any
		if err := kjson.Unmarshal([]byte(`{"n":`+text+`}`), &held); err != nil {
			row["error"] = err.Error()
		} else {
			written, err := json.Marshal(held["n"])
			if err != nil {
				return err
			}
			row["written"], row["shown"] = string(written), fmt.Sprintf("%v", held["n"])
			if float, is := held["n"].(float64); is && math.IsInf(float, 0) {
				return fmt.Errorf("%s is infinite", text)
			}
		}
		if err := out.Encode(row); err != nil {
			return err
		}
	}
	return nil
}
