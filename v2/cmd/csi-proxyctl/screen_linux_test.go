package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// screen is what a terminal shows: as much of ECMA-48 and xterm as programs use on a whole
// screen. It reports what it does not know, so that a test fails instead of passing by luck.
type screen struct {
	rows, cols  int
	cells       [][]rune
	row, col    int
	top, bottom int // the rows that scroll
	last        rune
	full        bool // the cursor is behind the last column
	alternate   bool
	normal      [][]rune // the screen below the alternate one
	hidden      bool     // the cursor
	wrapped     []string // lines that did not fit
	unknown     []string
}

func newScreen(rows, cols int) *screen {
	s := &screen{}
	s.resize(rows, cols)
	return s
}

func blank(rows, cols int) [][]rune {
	cells := make([][]rune, rows)
	for i := range cells {
		cells[i] = slices.Repeat([]rune{' '}, cols)
	}
	return cells
}

// resize keeps what is at the top left, as xterm does.
func (s *screen) resize(rows, cols int) {
	fit := func(old [][]rune) [][]rune {
		cells := blank(rows, cols)
		for i := range min(len(old), rows) {
			copy(cells[i], old[i])
		}
		return cells
	}
	s.cells, s.normal = fit(s.cells), fit(s.normal)
	s.rows, s.cols, s.top, s.bottom, s.full = rows, cols, 0, rows, false
	s.row, s.col = min(s.row, rows-1), min(s.col, cols-1)
}

// lines returns the text without spaces at the ends of lines.
func (s *screen) lines() []string {
	lines := make([]string, len(s.cells))
	for i, cells := range s.cells {
		lines[i] = strings.TrimRight(string(cells), " ")
	}
	return lines
}

func (s *screen) String() string { return strings.Join(s.lines(), "\n") }

// write shows output. It returns the rest of an escape sequence that is not complete.
func (s *screen) write(text string) (rest string) {
	for text != "" {
		if text[0] == '\x1b' {
			n := s.escape(text)
			if n == 0 {
				return text
			}
			text = text[n:]
			continue
		}
		r, n := utf8.DecodeRuneInString(text)
		if r == utf8.RuneError && !utf8.FullRuneInString(text) {
			return text
		}
		s.show(r)
		text = text[n:]
	}
	return ""
}

func (s *screen) show(r rune) {
	switch r {
	case '\r':
		s.col, s.full = 0, false
	case '\n':
		s.full = false
		s.lineFeed()
	case '\b':
		s.col, s.full = max(0, s.col-1), false
	case '\t':
		s.col = min(s.cols-1, (s.col/8+1)*8)
	case '\a', 0:
	default:
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			s.unknown = append(s.unknown, fmt.Sprintf("%U", r))
			return
		}
		if s.full {
			s.wrapped = append(s.wrapped, string(s.cells[s.row]))
			s.col, s.full = 0, false
			s.lineFeed()
		}
		s.cells[s.row][s.col], s.last = r, r
		if s.col == s.cols-1 {
			s.full = true
		} else {
			s.col++
		}
	}
}

func (s *screen) lineFeed() {
	if s.row == s.bottom-1 {
		s.scroll(s.top, 1)
	} else {
		s.row = min(s.rows-1, s.row+1)
	}
}

// scroll moves the rows from a row to the end of the scrolling ones up, or down if n is negative.
func (s *screen) scroll(from, n int) {
	for range n {
		s.cells = slices.Insert(slices.Delete(s.cells, from, from+1), s.bottom-1, blank(1, s.cols)[0])
	}
	for range -n {
		s.cells = slices.Insert(slices.Delete(s.cells, s.bottom-1, s.bottom), from, blank(1, s.cols)[0])
	}
}

// escape acts on the escape sequence at the start of the text and returns its length, 0 if it is
// not complete.
func (s *screen) escape(text string) int {
	if len(text) < 2 {
		return 0
	}
	switch text[1] {
	case '[':
		end := strings.IndexFunc(text[2:], func(r rune) bool { return r >= '@' && r <= '~' })
		if end < 0 {
			return 0
		}
		s.control(text[2:2+end], text[2+end])
		return end + 3
	case ']', 'P', '_', '^': // a string up to BEL or ESC \
		end := strings.IndexAny(text[2:], "\a\x1b")
		if end < 0 || text[2+end] == '\x1b' && len(text) < end+4 {
			return 0
		}
		s.unknown = append(s.unknown, fmt.Sprintf("%q", text[:2+end]))
		if text[2+end] == '\a' {
			return end + 3
		}
		return end + 4
	case 'M':
		if s.row == s.top {
			s.scroll(s.top, -1)
		} else {
			s.row--
		}
		return 2
	case '=', '>', '7', '8', '\\':
		return 2
	case '(', ')':
		return min(3, len(text))
	}
	s.unknown = append(s.unknown, fmt.Sprintf("%q", text[:2]))
	return 2
}

// control acts on a control sequence.
func (s *screen) control(parameters string, final byte) {
	if strings.ContainsAny(parameters, "?<=>$!") {
		s.mode(parameters, final)
		return
	}
	n := []int{0, 0}
	for i, part := range strings.SplitN(parameters, ";", 2) {
		n[i], _ = strconv.Atoi(strings.TrimRight(part, " \"")) // missing: 0
	}
	one := max(1, n[0])
	if strings.IndexByte("mtXb", final) < 0 {
		s.full = false
	}
	row := s.cells[s.row]
	switch final {
	case 'A':
		s.row = max(0, s.row-one)
	case 'B', 'e':
		s.row = min(s.rows-1, s.row+one)
	case 'C', 'a':
		s.col = min(s.cols-1, s.col+one)
	case 'D':
		s.col = max(0, s.col-one)
	case 'E':
		s.row, s.col = min(s.rows-1, s.row+one), 0
	case 'F':
		s.row, s.col = max(0, s.row-one), 0
	case 'G', '`':
		s.col = min(s.cols-1, one-1)
	case 'd':
		s.row = min(s.rows-1, one-1)
	case 'H', 'f':
		s.row, s.col = min(s.rows-1, one-1), min(s.cols-1, max(1, n[1])-1)
	case 'I':
		for range one {
			s.show('\t')
		}
	case 'Z':
		s.col = max(0, (s.col-1)/8*8)
	case 'J':
		s.erase(n[0])
	case 'K':
		from, to := s.col, s.cols
		if n[0] > 0 {
			from = 0
		}
		if n[0] == 1 {
			to = s.col + 1
		}
		copy(row[from:to], blank(1, to-from)[0])
	case 'X':
		copy(row[s.col:], blank(1, min(one, s.cols-s.col))[0])
	case '@':
		s.cells[s.row] = slices.Insert(row, s.col, blank(1, one)[0]...)[:s.cols]
	case 'P':
		s.cells[s.row] = append(slices.Delete(row, s.col, min(s.cols, s.col+one)), blank(1, min(one, s.cols-s.col))[0]...)
	case 'L':
		s.scroll(s.row, -one)
	case 'M':
		s.scroll(s.row, one)
	case 'S':
		s.scroll(s.top, one)
	case 'T':
		s.scroll(s.top, -one)
	case 'b':
		for range one {
			s.show(s.last)
		}
	case 'r':
		s.top, s.bottom, s.row, s.col = one-1, s.rows, 0, 0
		if n[1] > 0 {
			s.bottom = min(s.rows, n[1])
		}
	case 'm', 'c', 'n', 'q', 't': // colours, questions, the shape of the cursor
	default:
		s.unknown = append(s.unknown, fmt.Sprintf("CSI %s%c", parameters, final))
	}
}

func (s *screen) erase(what int) {
	from, to := s.row*s.cols+s.col, s.rows*s.cols
	switch what {
	case 1:
		from, to = 0, from+1
	case 2, 3:
		from = 0
	}
	for i := from; i < to; i++ {
		s.cells[i/s.cols][i%s.cols] = ' '
	}
}

// mode acts on the private sequences that are visible.
func (s *screen) mode(parameters string, final byte) {
	on := final == 'h'
	if final != 'h' && final != 'l' {
		return // keyboards, questions
	}
	for mode := range strings.SplitSeq(strings.TrimPrefix(parameters, "?"), ";") {
		switch mode {
		case "25":
			s.hidden = !on
		case "1049":
			if on && !s.alternate {
				s.normal, s.cells = s.cells, blank(s.rows, s.cols)
			}
			if !on && s.alternate {
				s.cells = s.normal
			}
			s.alternate = on
		}
	}
}
