package main

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// combined returns the fixed texts, and combinations of pieces, random with a fixed seed.
func combined(fixed, pieces []string, count, most int, seed int64) []string {
	source := rand.New(rand.NewSource(seed))
	texts := append([]string{}, fixed...)
	for range count {
		var text strings.Builder
		for range 1 + source.Intn(most) {
			text.WriteString(pieces[source.Intn(len(pieces))])
		}
		texts = append(texts, text.String())
	}
	return texts
}

// durations records time.ParseDuration and Duration.String.
func durations(out *json.Encoder) error {
	fixed := []string{
		"", "0", "+0", "-0", "-", "+", "1", "1s", "-1s", "+1s", ".5s", "1.s", ".s", "1.5h", "1h30m", "1m0.5s", "100ms", "1us", "1\u00b5s", "1\u03bcs", "1ns",
		"9223372036854775807ns", "9223372036854775808ns", "-9223372036854775808ns", "-9223372036854775809ns", "2562047h47m16.854775807s", "2562047h47m16.854775808s",
		"99999999999999999999h", "0.000000000000000000001h", "0.3333333333333333333h", "0.9223372036854775807h", "0.10000000000000000000001s", "1d", "1 s", " 1s", "1s ", "1h 30m", "1e3s", "s", "1sm", "1.2.3s",
		"\u00e9s", "1\u00e9", "1\"s", "1\x01", "3000000h", "1h-1m", "0s", "00s", "0h0m", "1000000000000000000000ns", "1.0000000000000000000000001s", "9223372036.854775807s", "9223372036.8547758078s",
	}
	pieces := []string{"1", "0", "7", "30", "999", "9223372036", ".", ".5", "-", "+", "s", "m", "h", "ms", "us", "ns", "\u00b5s", "d", " "}
	for _, text := range combined(fixed, pieces, 400, 6, 3) {
		duration, err := time.ParseDuration(text)
		answer := fmt.Sprintf("%d %s", int64(duration), duration)
		if err != nil {
			answer = err.Error()
		}
		if err := out.Encode(map[string]string{"text": text, "answer": answer}); err != nil {
			return err
		}
	}
	return nil
}

// times records how metav1.Time and metav1.MicroTime parse and print texts.
func times(out *json.Encoder) error {
	fixed := []string{
		"", "2026-01-02T03:04:05Z", "2026-01-02T03:04:05.987Z", "2026-01-02T03:04:05,987Z", "2026-01-02T03:04:05.Z", "2026-01-02T03:04:05.123456Z", "2026-01-02T03:04:05,123456Z",
		"2026-01-02T03:04:05.1234567Z", "2026-01-02T03:04:05.12345Z", "2026-01-02T03:04:05.123456789123Z", "2026-01-02T03:04:05+02:00", "2026-01-02T03:04:05-00:00", "2026-01-02T03:04:05+24:00",
		"2026-01-02T03:04:05+24:60", "2026-01-02T03:04:05+25:00", "2026-01-02T03:04:05+02:61", "2026-01-02T03:04:05+0200", "2026-01-02T03:04:05+02", "2026-01-02T3:04:05Z", "2026-01-02T03:4:05Z",
		"2026-1-02T03:04:05Z", "2026-01-2T03:04:05Z", "26-01-02T03:04:05Z", "02026-01-02T03:04:05Z", "2026-02-29T00:00:00Z", "2024-02-29T00:00:00Z", "2026-02-30T03:04:05Z", "2026-13-02T03:04:05Z", "2026-00-02T03:04:05Z",
		"2026-01-00T03:04:05Z", "2026-01-32T03:04:05Z", "2026-01-32T03:04:05Zx", "2026-01-02T24:00:00Z", "2026-01-02T23:60:00Z", "2026-01-02T23:59:60Z", "2026-13-02", "2026-01-02", "2026-01-02T", "2026-01-02T03", "2026-01-02T03:04:05", "2026-01-02T03:04:05Zx",
		"2026-01-02t03:04:05z", "2026-01-02 03:04:05Z", "yesterday", "2026-01-0\u00e9", "20\"6-01-02T03:04:05Z", "2026-01-02T03:04:05\\", "2026-01-02T03:04:05\x7f", "2026-01-02T03:04:05\x01", "9999-12-31T23:59:59Z", "9999-12-31T23:59:59.999999Z", "0001-01-01T00:00:00Z", "0000-01-01T00:00:00Z",
		"1969-12-31T23:59:59.5Z", "1969-12-31T23:59:59.500000Z", "-001-01-01T00:00:00Z", "+2026-01-02T03:04:05Z", "2026-01-02T03:04:05 Z", " 2026-01-02T03:04:05Z", "2026-01-02T03:04:05\u22122:00", "2026-01-02T03:04:05+2:00", "2026-01-02T03:04:05+\u00e9:00",
	}
	pieces := []string{"2026-01-02T03:04:05", "2025-", "12-", "31", "T", "23:", "59:", "59", "Z", ".5", ".000001", "+01:00", "-12:30", "0", ":", "-"}
	read := func(layout, text string) (time.Time, string) {
		at, err := time.Parse(layout, text)
		if err != nil {
			return at, err.Error()
		}
		return at, ""
	}
	for _, text := range combined(fixed, pieces, 300, 8, 4) {
		row := map[string]string{"text": text}
		at, refused := read(time.RFC3339, text)
		if refused == "" {
			refused = at.UTC().Format(time.RFC3339) + " " + at.Format(time.RFC3339Nano)
		}
		row["time"] = refused
		at, refused = read(metav1.RFC3339Micro, text)
		if refused == "" {
			refused = at.UTC().Format(metav1.RFC3339Micro)
		}
		row["micro"] = refused
		if err := out.Encode(row); err != nil {
			return err
		}
	}
	return nil
}

// requestURIs records errors and output of url.ParseRequestURI.
func requestURIs(out *json.Encoder) error {
	fixed := []string{
		"", "*", "/", "/a", "//a", "///a", "a", "a/b", "a:b", ":a", "1a://b", "a1+-.://b", "http:", "http:/", "http://", "http:///a", "http://a", "HTTP://A/b", "http://a:80", "http://a:", "http://a:b", "http://a:1:2", "postgres://a:1,b:2/x",
		"http://[::1]:80/", "http://[::1", "http://[1.2.3.4]/", "http://x[::1]/", "http://[::g]/", "http://[fe80::1%25en0]/", "http://[fe80::1%25%41]/", "http://[fe80::1%en0]/", "http://u@a/", "http://u:p@a/", "http://u ser@a/", "http://u%zz@a/", "http://@a", "http://a@b@c/",
		"/%", "/%4", "/%zz", "/%41", "http://%41/", "http://%C3%A9/", "http://a%20b/", "http://a b/", "http://\u00e9/", "http://a<b>/", "/a b", "/a?b=c#d", "/a#b", "?a", "#a", "http://a?b", "http://a#b", "mailto:a@b.c", "data:,", "/a\x7f", "/a\n", "http://a\\b/", "http://a^b/", "http://a|b/", "http://a{b}/", "http://a`b/", "http://a\"b/", "../a", "./a", "http://a/b?c?d", "http://a/?", "https://a:65536/", "https://a:99999999999/", "http://1.2.3.4:80/x", "http://01.2.3.4/",
	}
	pieces := []string{"http", "https", ":", "/", "//", "@", "a", "b.c", "%41", "%", "%zz", "[", "]", "::1", "?", "#", " ", "80", "\u00e9", "*", "+", "1"}
	for _, text := range combined(fixed, pieces, 500, 7, 5) {
		parsed, err := url.ParseRequestURI(text)
		row := map[string]string{"text": text}
		if err != nil {
			row["error"] = err.Error()
		} else {
			row["printed"] = parsed.String()
		}
		if err := out.Encode(row); err != nil {
			return err
		}
	}
	return nil
}

// quoted records strconv.Quote of each character at a boundary of the printable ranges.
func quoted(out *json.Encoder) error {
	fixed := []string{"", "plain 'x'", "a\"b\\", "\a\b\f\n\r\t\v", "\x00\x1f\x7f\u0080\u00a0\u00ad", "\u00e9\u4e16\u0301\U0001f600", "\u200b\u2028\ufeff\ufffd\U000e0001\U0010ffff", "\u0378\u0600\u1680\u3000\ue000\ufdd0\uffff"}
	for _, text := range fixed {
		if err := out.Encode(map[string]string{"text": text, "quoted": strconv.Quote(text)}); err != nil {
			return err
		}
	}
	return nil
}

// addresses records netip.ParseAddr, netip.ParsePrefix, and how addresses are classified.
func addresses(out *json.Encoder) error {
	fixed := []string{
		"", "1.2.3.4", "01.2.3.4", "1.2.3", "1.2.3.4.5", "1.2.3.256", "0.0.0.0", "127.0.0.1", "127.255.0.1", "169.254.1.1", "224.0.0.1", "224.0.1.1", "239.1.1.1", "255.255.255.255", "10.0.0.1", "192.168.1.1", "::", "::1", "fe80::1", "fe80::1%eth0", "febf::1", "fec0::1",
		"ff02::1", "ff12::1", "ff01::1", "ff05::1", "2001:db8::1", "fc00::1", "::ffff:1.2.3.4", "::ffff:127.0.0.1", "::ffff:0.0.0.0", "::ffff:255.255.255.255", "::ffff:169.254.0.1", "::ffff:224.0.0.1", "::1.2.3.4", "1::2::3", "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "::g", "12345::", ":1", "1:", "fe80::%", "1.2.3.4%x", "a", "%", "::1.2.3", "1:2:3:4:5:6:7:1.2.3.4", "::01.2.3.4", " 1.2.3.4",
	}
	pieces := []string{"1", "0", "255", "256", ".", ":", "::", "ff", "fe80", "ffff", "%a", "g"}
	for _, text := range combined(fixed, pieces, 300, 9, 6) {
		row := map[string]string{"text": text}
		address, err := netip.ParseAddr(text)
		if err != nil {
			row["error"] = err.Error()
		} else {
			plain := address.WithZone("")
			row["printed"] = plain.String()
			ip := plain.Unmap()
			row["kinds"] = fmt.Sprintf("global=%t local=%t multicast=%t", ip.IsGlobalUnicast(), ip.IsLinkLocalUnicast(), ip.IsLinkLocalMulticast())
		}
		if err := out.Encode(row); err != nil {
			return err
		}
	}
	return nil
}
