package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"regexp"
	"regexp/syntax"
	"strings"
)

// Texts that every pattern is held against.
var texts = []string{"", "a", "A", "b", "ab", "abc", "aaa", "aaaa", "0", "12", "a1", "a-b", "a_b", "a.b", "-", "]", "[", "^", "{", "}", "{{a}}", "a{2}", "\\", "$", "a\nb", "\n", " ", "\t\v", "k", "K", "\u212a", "s", "\u017f", "é", "É", "ß", "λ", "Λ", "ж", "中", "٣", "\u2028", "\U0001F600", "a b", "foo.bar.example.com", "10.0.0.1", "192.168.0.1/24", "us-east-1", "v1.2.3-rc.1+5", "100m", "1Gi", "2006-01-02T15:04:05Z", "https://example.com/a?b#c", "user@example.com", "my-name", "My_Name", "-bad-", strings.Repeat("x", 64), "aXbXc", "()*+?", "p{L}", "Q", "E", "\x00", "\x7f"}

var hand = strings.Split(`^{{.*}}$
^[^[\]]+$
\<
^.{1,4096}$
\u0041
\d
^\d+$
\D
\w
\W
\s
\S
[\d]
[\w-]
[\s\S]
[^\s]
[^\W]
[\D\d]
(?i)\w
(?i)\W
(?i)[\w]
(?i)[^\w]
(?i)k
(?i)s
(?i)[k]
(?i)[^k]
(?i)[a-z]
(?i)[^a-z]
(?i)ß
(?i)é
(?i)λ
(?i)\pL
(?i)\p{Lu}
(?i)\P{Lu}
(?i)[\p{Ll}]
(?i)[^\p{Ll}]
(?i)[[:upper:]]
(?i)[[:^upper:]]
(?i)\x{212A}
(?i)\QK\E
\pN
\pL
\PL
\p{L}
\P{L}
\p{^L}
\P{^L}
\p{Greek}
\p{greek}
\p{Han}
\p{Cyrillic}
\p{Nd}
\p{Any}
\p{any}
\P{Any}
\p{Assigned}
\P{Assigned}
\p{ASCII}
\P{ASCII}
\p{Cs}
\P{Cs}
\p{Cn}
\p{Co}
\p{C}
\p{LC}
\p{Lc}
\p{L&}
\p{Letter}
\p{letter}
\p{Uppercase_Letter}
\p{uppercase letter}
\p{cntrl}
\p{digit}
\p{punct}
\p{Combining_Mark}
\p{Alphabetic}
\p{White_Space}
\p{Script=Greek}
\p{sc=Greek}
\p{IsGreek}
\p{}
\p{^}
\p{^^L}
\p
\P
\p{
\p{L
\pé
[\p]
[\p{L]
[\pL\d_]
[^\pL]
[\p{Greek}\p{Cyrillic}]
\Q
\Q\E
\Qa.b\E
\Qa.b
\Q.\E*
a\Q\E*
a*\Q\E*
a*\Q\E?
a+\Q\E?
^(?:a+\Q\E?)$
a{2}\Q\E{2}
\E
\Qab\E+
\Q\\E
\Q[\E]
[\Q]\E]
\A
\z
\Z
\b
\B
\C
\G
\K
\X
\R
\h
\H
\N
\e
\c
\cA
\y
\_
\-
\.
\/
\:
\@
\"
\é
\ 
\1
\12
\07
\0
\00
\000
\0000
\8
\9
\18
\x
\x4
\x41
\x{
\x{}
\x{41}
\x{00000041}
\x{110000}
\x{10FFFF}
\x{D800}
\x{dfff}
[\x{D800}]
[^\x{D800}]
[\x{D800}-\x{DFFF}]
[\x{D000}-\x{E000}]
[a\x{D800}]
\x{4g}
\x{ 41}
\xg1
\a
\f
\n
\r
\t
\v
\\
\
a\
[\
[\]
[]
[]]
[]a]
[^]
[^]]
[^]a]
[a
[a-
[a-]
[-a]
[a-z-9]
[z-a]
[a-\d]
[\d-a]
[\d-z]
[a-z
[[]
[[a]
[[:alpha:]]
[[:^alpha:]]
[[:alpha:][:digit:]]
[^[:alpha:]]
[[:foo:]]
[[:alpha]]
[[:alpha:]
[[:word:]]
[[:ascii:]]
[[:blank:]]
[[:cntrl:]]
[[:graph:]]
[[:print:]]
[[:punct:]]
[[:space:]]
[[:xdigit:]]
[[:^space:]]
[[:Alpha:]]
[[:^^alpha:]]
[[.a.]]
[[=a=]]
[:alpha:]
[a&&b]
[a--b]
[a~~b]
[&&]
[--]
[---]
[+--]
[!--]
[a-b-c]
[\-a]
[a\-z]
[\^a]
[a^]
[^^]
[^^a]
[.]
[$]
[|]
[()]
[{}]
[*+?]
[\b]
[\B]
[\A]
[\z]
[\Q]
[\x41-\x43]
[\101-\103]
[\0-\7]
[\n]
[
]
[a
b]
{
}
{}
{1}
{1
{,1}
{1,}
a{
a}
a{}
a{,}
a{,2}
a{1
a{1,
a{1,2
a{1 }
a{ 1}
a{01}
a{1,02}
a{-1}
a{0}
a{0,}
a{0,0}
a{1}
a{2}
a{2,}
a{2,3}
a{3,2}
a{1000}
a{1001}
a{1000,}
a{1001,}
a{0,1000}
a{0,1001}
a{1,1001}
a{99999999999}
a{1,99999999999}
a{2147483648}
(a{100}){10}
(a{100}){11}
(a{10}){10}{10}
((a{10}){10}){10}
((a{10}){10}){11}
(?:(?:a{10}){10}){10}
(a{0}){1001}
(a{0}){1000}
((a{1000}){0}){1000}
(a{1000}){1}
(a{1000}){0,1}
(a{1000})*
(a{1000})+
(a{1000})?
(a*){1000}
((a{2}){500}){1}
((a{2}){501}){1}
(a{1000}|b){1}
(a{1000}|b){2}
(a{500}|b{3}){2}
(a{1,}){1000}
(a{2,}){500}
(a{2,}){501}
(a{,5}){1000}
*
+
?
*a
a**
a*+
a*?
a*??
a+?
a++
a??
a???
a{2}?
a{2}??
a{2}{3}
a{2}*
a*{2}
a{2}+
(?:a*)*
(?:a+)?
(a*)*
(a*)+
(|a)*
(a|)*
^*
$*
^+
^?
\b*
\b+
\A*
(^)*
(?i)*
a(?i)*
a*(?i)*
a(?i)b
a|*
|*
(*
(|*)
(?:*)
()*
(?:)*
()
(?:)
(
)
((
))
(a
a)
(a))
((a)
(a)(b)
|
||
a|
|a
a||b
(|)
(a|b|c)
a|b
ab|ac
(?i)a|b
(?i:a)b
(?i:a|b)c
(?i-s:a.b)
(?s).
(?s:.)
a(?s).b
(?-s).
(?m)^b
(?m)a$
(?m:^b$)
(?-m)^b
(?sm)a.^b
(?U)a+
(?U:a+?)
(?i-i:a)
(?-i)a
(?i)(?-i)a
(?i
(?
(?)
(?-)
(?-:a)
(?i-)
(?i-:a)
(?-i-s)
(?--i)
(?ii)
(?i-s-m)
(?x)a b
(?x: a )
(?a)
(?L)
(?u)
(?n)
(?P
(?P<
(?P<n
(?P<n>
(?P<n>a)
(?P<n>a
(?<n>a)
(?<n
(?<
(?<>a)
(?P<>a)
(?P<n-m>a)
(?P<1>a)
(?P<é>a)
(?P<n>a)(?P<n>b)
(?<n>a)(?<n>b)
(?P=n)
(?P>n)
(?'n'a)
(?=a)
(?!a)
(?<=a)
(?<!a)
(?>a)
(?#comment)
(?|a)
(?R)
(?1)
(?&n)
(?(1)a)
a(?=b)
^(?!-)[a-z]+$
((?i)a)b
((?i)a|b)c
(?:(?i)a)b
(a(?i)b)c
(?i)(a(?-i)b)c
.
..
^.$
^a$
^$
$^
a$b
a^b
^^
$$
^a|b$
.*
.+
.?
^.*$
^.+$
x*
^x{64}$
^[a-z0-9]([-a-z0-9]*[a-z0-9])?$
^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$
^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$
^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$
^((25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(\.|$)){4}
^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$
^\S+$
^[^\s/]+/[^\s/]+$
^https?://
^(https?|ftp)://[^\s/$.?#].[^\s]*$
^[\w.%+-]+@[\w.-]+\.[A-Za-z]{2,}$
^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?(\+[0-9A-Za-z-]+)?$
^\d{4}-\d{2}-\d{2}T
^(?:[a-z]+-)+\d$
^[^{}]+$
^[^]]+$
^\$\{[^}]+\}$
^\{\{.*\}\}$
^{.*}$
^.{,63}$
^.{0,63}$
^.{1,1000}$
^(.{1,100}){1,10}$
^(.{1,100}){1,11}$
^[\x20-\x7E]*$
^[\p{L}\p{N}_-]+$
^\/.*$
^\#[0-9a-f]{6}$
^[0-9a-f]{8}-[0-9a-f]{4}$
^\w+(\.\w+)*$
^(?i)(true|false)$
^(?i:yes|no)$
é
^é$
[é-ë]
[à-ÿ]
\é
中+
^[一-龥]+$
\x{4e2d}
[\x{4e00}-\x{9fa5}]
😀
^.$
^..$`, "\n")

var atoms = []string{"a", "b", "A", "k", "s", "1", "-", "_", ".", "^", "$", "]", "}", "{", "\\d", "\\w", "\\s", "\\D", "\\W", "\\S", "\\b", "\\B", "\\A", "\\z", "\\pL", "\\p{Lu}", "\\p{Greek}", "\\PN", "\\P{^L}", "[a-z]", "[^a-z]", "[\\w-]", "[[:alpha:]]", "[^[:^digit:]]", "[]a]", "[^]]", "\\x41", "\\x{3bb}", "\\101", "\\n", "\\.", "\\-", "\\Qa+\\E", "é", "Λ", "中", "\\/", "[a-]", "[\\p{Ll}1]", "(?i)", "(?s)", "(?m)", "(?-i)", "X", "\n", "{2", "{,3}"}
var opens = []string{"(", "(?:", "(?i:", "(?s:", "(?m:", "(?P<n>", "(?<n>", "(?U:", "(?-i:", "(?i-s:"}
var reps = []string{"*", "+", "?", "{2}", "{0,2}", "{1,}", "{3}", "*?", "+?", "{2,3}?"}

func gen(r *rand.Rand, depth int) string {
	var b strings.Builder
	n := 1 + r.Intn(4)
	for i := 0; i < n; i++ {
		switch k := r.Intn(10); {
		case k < 2 && depth > 0:
			b.WriteString(opens[r.Intn(len(opens))] + gen(r, depth-1) + ")")
		case k == 2:
			b.WriteString("|")
		default:
			b.WriteString(atoms[r.Intn(len(atoms))])
		}
		if r.Intn(4) == 0 {
			b.WriteString(reps[r.Intn(len(reps))])
		}
	}
	return b.String()
}

func class(r *rand.Rand) string {
	parts := []string{"a", "z", "-", "^", "]", "[", "\\]", "\\-", "\\\\", "0", "9", "\\d", "\\W", "\\pL", "\\P{Lu}", "[:alpha:]", "[:^space:]", "é", "λ", "\\x41", "\\n", "&&", "~~", "--", ".", "k", "\\x{212A}", "[:", ":]", "a-z", "\\x{D7FF}-\\x{E000}", "\\101"}
	b := "["
	if r.Intn(3) == 0 {
		b += "^"
	}
	for i := r.Intn(5); i >= 0; i-- {
		b += parts[r.Intn(len(parts))]
	}
	b += "]"
	if r.Intn(3) == 0 {
		b = "(?i)" + b
	}
	if r.Intn(3) == 0 {
		b = "^" + b + "+$"
	}
	return b
}

func mutate(r *rand.Rand, s string) string {
	u := []rune(s)
	const signs = "()[]{}*+?|^$\\.-,:<>=!PpQEiIsx0129aZ&~ué\n"
	sr := []rune(signs)
	for i := 1 + r.Intn(2); i > 0; i-- {
		at := r.Intn(len(u) + 1)
		switch r.Intn(3) {
		case 0:
			if at < len(u) {
				u = append(u[:at:at], u[at+1:]...)
			}
		case 1:
			if at < len(u) {
				v := append([]rune{}, u...)
				v[at] = sr[r.Intn(len(sr))]
				u = v
			}
		default:
			u = append(u[:at:at], append([]rune{sr[r.Intn(len(sr))]}, u[at:]...)...)
		}
	}
	return string(u)
}

// A text made of the letters of the pattern.
func own(r *rand.Rand, s string) string {
	var u []rune
	for _, c := range s {
		if !strings.ContainsRune("()[]{}*+?|^$\\:<>", c) || r.Intn(6) == 0 {
			u = append(u, c)
		}
	}
	if len(u) == 0 {
		return "aa"
	}
	t := ""
	for i := r.Intn(5); i >= 0; i-- {
		t += string(u[r.Intn(len(u))])
	}
	return t
}

func js(s any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.Encode(s)
	return strings.TrimSpace(b.String())
}

func main() {
	r := rand.New(rand.NewSource(1))
	w := bufio.NewWriter(os.Stdout)
	defer w.Flush()
	fmt.Fprintln(w, js(texts))
	seen := map[string]bool{}
	counts := map[string]int{}
	emit := func(p string) {
		if seen[p] {
			return
		}
		seen[p] = true
		re, err := regexp.Compile(p)
		if err != nil {
			code := err.(*syntax.Error).Code.String()
			counts[code]++
			fmt.Fprintf(w, "%s\t%s\n", js(p), code)
			return
		}
		counts["ok"]++
		mine := []string{own(r, p), own(r, p)}
		bits := ""
		all := append(append([]string{}, texts...), mine...)
		for i := 0; i < len(all); i += 4 {
			v := 0
			for j := i; j < i+4 && j < len(all); j++ {
				if re.MatchString(all[j]) {
					v |= 1 << (j - i)
				}
			}
			bits += fmt.Sprintf("%x", v)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", js(p), js(mine), bits)
	}
	for _, p := range hand {
		emit(p)
	}
	for _, p := range []string{"a\nb", "[\n]", "^a\n$", "\\\n", strings.Repeat("(", 999) + "a" + strings.Repeat(")", 999), strings.Repeat("(", 1000) + "a" + strings.Repeat(")", 1000), strings.Repeat("(?:", 3000) + "a" + strings.Repeat(")", 3000), strings.Repeat("(?:", 999) + "a" + strings.Repeat(")*", 999), strings.Repeat("(?:", 1000) + "a" + strings.Repeat(")*", 1000), strings.Repeat("(a|", 600) + "b" + strings.Repeat(")", 600), strings.Repeat("((a{100}){10}|", 40) + strings.Repeat(")", 40), strings.Repeat("(x{1000}y{1000})", 5), strings.Repeat("[a-z]{1000}", 5000)} {
		emit(p)
	}
	n := len(seen)
	for i := 0; i < 500; i++ {
		emit(class(r))
	}
	for i := 0; i < 1500; i++ {
		emit(gen(r, 2))
	}
	for i := 0; i < 1200; i++ {
		emit(mutate(r, hand[r.Intn(len(hand))]))
	}
	for i := 0; i < 600; i++ {
		emit(mutate(r, gen(r, 1)))
	}
	fmt.Fprintln(os.Stderr, n, len(seen), counts)
}
