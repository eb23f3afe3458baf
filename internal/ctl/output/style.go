package output

// Style is how a word stands out on a terminal.
type Style int

// The styles. Their colours are those of the terminal's own palette.
const (
	Plain Style = iota
	Faint
	Bold
	Good
	Warning
	Bad
)

// escapes are the codes of ECMA-48 (select graphic rendition), which terminals of Windows
// know since Windows 10.
var escapes = [...]string{Faint: "\x1b[2m", Bold: "\x1b[1m", Good: "\x1b[32m", Warning: "\x1b[33m", Bad: "\x1b[31m"}

const (
	escape     = '\x1b'
	plainAgain = "\x1b[0m"
)

// Paint gives text its colour, if there are colours.
func (p *Printer) Paint(style Style, text string) string {
	if !p.Colour || style == Plain || text == "" {
		return text
	}
	return escapes[style] + text + plainAgain
}
