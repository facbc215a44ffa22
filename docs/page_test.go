package docs_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A page is what two languages of one document must have in common.
type page struct {
	shape   []string // what the blocks are, in their order: "##", "text", "list of 3", …
	code    []string // fenced blocks, without their comments
	spans   []string // what stands in backquotes, sorted
	figures []string // numbers outside of code and of addresses, sorted
	links   []string // where links lead, sorted; files as paths from the root
	prose   []string // the texts of the blocks without code
}

var (
	fence     = regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$")
	span      = regexp.MustCompile("`[^`]+`")
	mdLink    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	figure    = regexp.MustCompile(`\d+(?:[.,:]\d+)*(?: ?%)?`)
	slashes   = regexp.MustCompile(`(?m)(^|\s)//.*$`)
	hashes    = regexp.MustCompile(`(?m)(^|\s)#.*$`)
	listEntry = regexp.MustCompile(`(?m)^ *(?:[-*]|\d+\.) `)
	heading   = regexp.MustCompile(`^(#+) `)
)

// parsePage reads a document that lies at a path below the root.
func parsePage(path, text string) page {
	var p page
	text = fence.ReplaceAllStringFunc(text, func(block string) string {
		m := fence.FindStringSubmatch(block)
		p.code = append(p.code, m[1]+"\n"+withoutComments(m[1], m[2]))
		return fmt.Sprintf("\n\x00%s\n", m[1])
	})
	for _, block := range regexp.MustCompile(`\n{2,}`).Split(strings.TrimSpace(text), -1) {
		p.shape = append(p.shape, shapeOf(block))
		if !strings.HasPrefix(block, "\x00") {
			p.prose = append(p.prose, block)
		}
	}
	text = strings.Join(p.prose, "\n\n")
	p.spans = span.FindAllString(text, -1)
	text = span.ReplaceAllString(text, " ")
	for _, m := range mdLink.FindAllStringSubmatch(text, -1) {
		p.links = append(p.links, targetOf(path, m[1]))
	}
	text = mdLink.ReplaceAllString(text, " ")
	text = listEntry.ReplaceAllString(text, "")
	for _, f := range figure.FindAllString(text, -1) {
		p.figures = append(p.figures, strings.ReplaceAll(f, " ", ""))
	}
	slices.Sort(p.spans)
	slices.Sort(p.links)
	slices.Sort(p.figures)
	return p
}

// shapeOf says what a block is, in a way that does not depend on its language.
func shapeOf(block string) string {
	lines := strings.Split(block, "\n")
	switch {
	case block[0] == 0:
		return "code " + block[1:]
	case heading.MatchString(block):
		return heading.FindStringSubmatch(block)[1]
	case block[0] == '|':
		return fmt.Sprintf("table of %d × %d", len(lines), strings.Count(strings.ReplaceAll(lines[1], `\|`, ""), "|")-1)
	case block[0] == '>':
		return "quote"
	case listEntry.MatchString(lines[0]):
		return fmt.Sprintf("list of %d", len(listEntry.FindAllString(block, -1)))
	default:
		return "text"
	}
}

// withoutComments leaves what a comment's language does not change.
func withoutComments(language, code string) string {
	switch language {
	case "go":
		code = slashes.ReplaceAllString(code, "")
	case "text", "console": // what a program prints
	default:
		code = hashes.ReplaceAllString(code, "")
	}
	lines := strings.Split(code, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " \t")
	}
	return strings.Join(lines, "\n")
}

// targetOf gives the file that a link leads to as a path from the root, and an
// address as it is. The place within a file has another name in each language.
func targetOf(path, link string) string {
	file, _, _ := strings.Cut(link, "#")
	if file == "" {
		return path
	}
	if strings.Contains(file, "://") {
		return link
	}
	return filepath.ToSlash(filepath.Join(filepath.Dir(path), file))
}
