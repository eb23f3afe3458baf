package output

// Style is a colour or weight of text.
type Style int

// The styles, in colours of the terminal's palette.
const (
	Plain Style = iota
	Faint
	Bold
	Good
	Warning
	Bad
)

// escapes are ECMA-48 codes (select graphic rendition), which Windows supports since
// Windows 10.
var escapes = [...]string{Faint: "\x1b[2m", Bold: "\x1b[1m", Good: "\x1b[32m", Warning: "\x1b[33m", Bad: "\x1b[31m"}

const (
	escape = '\x1b'
	reset  = "\x1b[0m"
)

// Paint colours text if the printer uses colours.
func (p *Printer) Paint(style Style, text string) string {
	if !p.Colour || style == Plain || text == "" {
		return text
	}
	return escapes[style] + text + reset
}
