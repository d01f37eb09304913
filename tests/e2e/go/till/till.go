// Package till is the part of the program that fails.
package till

import (
	"fmt"
	"sort"
)

type Declined struct{ Amount float64 }

func (d *Declined) Error() string { return fmt.Sprintf("no account for %v", d.Amount) }

// Charge gives report what went wrong while the standard library is in the middle of the stack.
func Charge(amounts []float64, report func(error)) {
	sort.Slice(amounts, func(i, j int) bool {
		report(fmt.Errorf("the order is lost: %w", &Declined{amounts[i]}))
		return false
	})
}

// Book writes to a map that nobody has made.
func Book(name string) {
	var accounts map[string]int
	accounts[name]++
}
