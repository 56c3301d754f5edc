package main

import (
	"encoding/json"
	"syscall"
)

// errnos records the names of the errors of the operating system (syscall.Errno.Error) that Linux has.
func errnos(out *json.Encoder) error {
	for number := 1; number <= 132; number++ {
		if number == 41 || number == 58 {
			continue // not assigned
		}
		if err := out.Encode(map[string]any{"number": number, "text": syscall.Errno(number).Error()}); err != nil {
			return err
		}
	}
	return nil
}
