package main

import (
	"encoding/json"
	"math/rand"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// written contains typical spellings and edge cases: each sign, digits, points and suffixes.
var written = []string{
	"", "0", "00", "-0", "+0", "-", "+", ".", "-.", "0.", ".0", "1", "+1", "-1", "5.", "0001", "-0001", "1.0", "1.5", "1.50", "1.500",
	"0.500", ".5", "-1.5", "1000", "1000m", "999m", "1001m", "100u", "100n", "1n", "0.1n", "0.0000000001", "0.0000000000000000001",
	"1.1234567891", "-1.1234567891", "1k", "1000k", "1.5k", "1M", "1E", "9E", "9.2E", "10E", "100E", "1000E", "1e3", "1E3", "12e4", "1e-3", "1e-9",
	"1e-10", "1e30", "1e999", "1e1000", "1e1001", "-1e999", "1e4294967296", "1e4294967299", "1e99999999999999999999", "1e+5", "1e+", "1e", "e3", "E", "e-20",
	".e-20", "-e-20", "0e999", "Mi", "Ki", ".Ki", "1.Ki", "0Gi", "0Ki", "1Ki", "+1Ki", "0001Ki", "8Ki", "1024Ki", "1024Mi", "1025Ki", "0.5Ki", "0.1Ki", "1.5Gi", "1.1Gi",
	"-1.1Gi", "0.0001Ki", "-0.0001Ki", "1000Mi", "1Ei", "7Ei", "8Ei", "-8Ei", "-9Ei", "7.9Ei", "7.99999999999999999999Ei", "16Ei", "100000000000Ei", "0.00000000000000000000000000001Ei",
	"9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "9223372036854775807Ki", "123456789012345678", "1234567890123456789",
	"12345678901234567890", "10000000000000000000000", "123456789012345678901234567890123456789012345678901234567890", "0.123456789012345678901234567890",
	"99999999999999.999999999999999999", "1.000000000000000000", "1.0000000000000000000", "100000000000000000000m", "123456789123456789123456789n", "1000000000000000000000000n",
	"1x", "abc", " 1", "1 ", "1i", "1KK", "1Kii", "1nm", "1E+-", "--1", "+-1", "1..2", "1m5x", "1k5", "1k-5", "1_000", "0x10", "1,5", "\u0661", "1\u00a0", "NaN", "Inf", "1e1e", "1K", "1g", "1mi", "1ki", "1.2.3", "1-", "1m-3", "1.5.",
}

func spelled() []string {
	texts := append([]string{}, written...)
	source := rand.New(rand.NewSource(2))
	digits := func(most int) string {
		var out strings.Builder
		for range source.Intn(most + 1) {
			if source.Intn(3) == 0 {
				out.WriteByte('0')
			} else {
				out.WriteByte(byte('0' + source.Intn(10)))
			}
		}
		return out.String()
	}
	signs := []string{"", "", "", "-", "+"}
	suffixes := []string{"", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e0", "e1", "e-1", "e2", "e-3", "e5", "E9", "e-12", "e17", "e40"}
	for range 1500 {
		text := signs[source.Intn(len(signs))] + digits([]int{3, 5, 12, 21}[source.Intn(4)])
		if source.Intn(3) == 0 {
			text += "." + digits([]int{3, 12, 24}[source.Intn(3)])
		}
		texts = append(texts, text+suffixes[source.Intn(len(suffixes))])
	}
	return texts
}

type quantityRow struct {
	Text     string `json:"text"`
	Error    string `json:"error,omitempty"`
	Printed  string `json:"printed,omitempty"`
	Value    int64  `json:"value"`
	Milli    int64  `json:"milli"`
	Sign     int    `json:"sign"`
	Integer  *int64 `json:"integer,omitempty"`
	Float    string `json:"float,omitempty"`
	Rounded  string `json:"rounded,omitempty"`
	Negative string `json:"negative,omitempty"`
	Other    string `json:"other,omitempty"`
	Sum      string `json:"sum,omitempty"`
	Rest     string `json:"rest,omitempty"`
	SumValue int64  `json:"sum_value"`
	Order    int    `json:"order"`
}

// quantities records how resource.Quantity parses, prints and rounds each text, and its sum with the previous one.
func quantities(out *json.Encoder) error {
	other := resource.MustParse("1")
	otherText := "1"
	for _, text := range spelled() {
		row := quantityRow{Text: text}
		quantity, err := resource.ParseQuantity(text)
		if err != nil {
			row.Error = err.Error()
			if err := out.Encode(row); err != nil {
				return err
			}
			continue
		}
		row.Printed, row.Value, row.Milli, row.Sign = fresh(quantity), quantity.Value(), quantity.MilliValue(), quantity.Sign()
		if integer, exact := quantity.AsInt64(); exact {
			row.Integer = &integer
		}
		row.Float = strconv.FormatFloat(quantity.AsApproximateFloat64(), 'g', -1, 64)
		rounded := quantity.DeepCopy()
		rounded.RoundUp(resource.Milli)
		row.Rounded = fresh(rounded)
		negative := quantity.DeepCopy()
		negative.Neg()
		row.Negative = fresh(negative)
		sum, rest := quantity.DeepCopy(), quantity.DeepCopy()
		// Sums of a number with a thousand digits and a short one add no cases.
		if !strings.ContainsAny(text+otherText, "eE") || len(text+otherText) < 60 && !strings.Contains(text+otherText, "e999") && !strings.Contains(text+otherText, "e100") {
			sum.Add(other)
			rest.Sub(other)
			row.Other, row.Sum, row.Rest, row.SumValue = otherText, fresh(sum), fresh(rest), sum.Value()
		}
		copied := quantity.DeepCopy()
		row.Order = copied.Cmp(other.DeepCopy())
		row.Other = otherText
		if err := out.Encode(row); err != nil {
			return err
		}
		other, otherText = quantity, text
	}
	return nil
}

func fresh(quantity resource.Quantity) string {
	copied := quantity.DeepCopy()
	return copied.String()
}
