package powershell

import (
	"errors"
	"strings"
	"testing"
)

// machine has a few commands, as a stand-in has them.
func machine() Commands {
	return Commands{
		"get-disk": {Parameters: []string{"Number"}, Run: func(c Call) ([]any, error) {
			disks := []any{
				Object{"Number": int64(0), "BusType": Enum{"SCSI", 10}, "IsOffline": false},
				Object{"Number": int64(3), "BusType": Enum{"iSCSI", 9}, "IsOffline": true},
			}
			if !c.Has("Number") {
				return disks, nil
			}
			n, err := c.Int("Number")
			if err != nil || n != 3 {
				return nil, errors.Join(errors.New("no such disk"), err)
			}
			return disks[1:], nil
		}},
		"show": {Parameters: []string{"Name", "Force", "Size"}, Positional: []string{"First", "Second"}, Run: func(c Call) ([]any, error) {
			var shown []string
			for _, name := range []string{"First", "Second", "Name", "Force", "Size"} {
				if c.Has(name) {
					shown = append(shown, name+"="+c.Text(name))
				}
			}
			return []any{strings.Join(shown, " ")}, nil
		}},
	}
}

func TestRun(t *testing.T) {
	for name, test := range map[string]struct{ source, want string }{
		"empty":                 {"", ""},
		"comment":               {"# nothing\n", ""},
		"path without quotes":   {`show C:\var\lib\kubelet\disk-1.vhdx`, `First=C:\var\lib\kubelet\disk-1.vhdx`},
		"path that ends in one": {`& { show C:\dir\ }`, `First=C:\dir\`},
		"switch":                {`show -Force -Name x`, "Name=x Force=True"},
		"switch with a value":   {`show -force:$false x`, "First=x Force=False"},
		"parameter fills one":   {`show -first a b`, "First=a Second=b"},
		"unit":                  {`show -Size 100MB`, "Size=104857600"},
		"list of words":         {`show a, b`, "First=a b"},
		"single quotes":         {`show 'it''s $x'`, "First=it's $x"},
		"double quotes":         {"$x = 1\nshow \"a${x}b$x `$x \"\"\"", `First=a1b1 $x "`},
		"scope":                 {`$global:ProgressPreference = 'SilentlyContinue'; show $global:progresspreference`, "First=SilentlyContinue"},
		"environment":           {`show $Env:UserName`, "First=someone"},
		"unknown variable":      {`show "[$nothing]"`, "First=[]"},
		"pipeline":              {`Get-Disk | Where-Object {$_.Bustype -eq "iSCSI"} | Select-Object -ExpandProperty Number`, "3"},
		"and":                   {`Get-Disk | Where-Object { $_.BusType -eq "iSCSI" -and $_.Number -eq 0 }`, ""},
		"property of a command": {`(Get-Disk -Number 3).IsOffline`, "True"},
		"property of all":       {`$(Get-Disk).Number`, "0\n3"},
		"property in a string":  {`$d = Get-Disk -Number 3; "disk $($d.Number)."`, "disk 3."},
		"object of all":         {`Get-Disk -Number 3`, "BusType : iSCSI\nIsOffline : True\nNumber : 3"},
		"JSON":                  {`Get-Disk -Number 3 | Select-Object BusType, Number | ConvertTo-Json`, "{\n  \"BusType\": 9,\n  \"Number\": 3\n}"},
		"hash table":            {"$o = @{\n \"iqn\" = \"a\"\n ip = 2; n = $null\n}\n$o | ConvertTo-Json | Write-Output", "{\n  \"ip\": 2,\n  \"iqn\": \"a\",\n  \"n\": null\n}"},
		"array":                 {`@("Iqn:*", 'b')`, "Iqn:*\nb"},
		"list in parentheses":   {`show -Name ("a", "b")`, "Name=a b"},
		"hidden":                {`show a | Out-Null`, ""},
		"several lines":         {"get-disk |\n  select-object -expandproperty number", "0\n3"},
	} {
		t.Run(name, func(t *testing.T) {
			script, err := Parse(test.source)
			if err != nil {
				t.Fatal(err)
			}
			values, err := machine().Run(script, []string{"USERNAME=someone"})
			if err != nil {
				t.Fatal(err)
			}
			got := strings.TrimSuffix(strings.ReplaceAll(Print(values), "\r\n", "\n"), "\n")
			if got != test.want {
				t.Errorf("%s\nprints %q\n want  %q", test.source, got, test.want)
			}
		})
	}
}

func TestParse_Errors(t *testing.T) {
	for name, test := range map[string]struct{ source, want string }{
		"open string":      {`show "a`, "no end"},
		"open quote":       {`show 'a`, "no end"},
		"open block":       {`& { show`, "missing '}'"},
		"open parenthesis": {`(show`, "missing ')'"},
		"closed too often": {"show\nlist )", "line 2: unexpected ')'"},
		"no variable":      {`show $`, "no name"},
		"not a number":     {`$x = 12abc`, "not a number"},
		"too large":        {`$x = 9999999TB`, "not a number"},
		"no command":       {`show |`, "missing"},
		"too deep":         {strings.Repeat("(", 2*maxDepth), "too deeply"},
		"no value":         {`@{ a = }`, "unexpected"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Parse(test.source); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Parse(%q) = %v, want an error with %q", test.source, err, test.want)
			}
		})
	}
}

func TestRun_Errors(t *testing.T) {
	for name, test := range map[string]struct{ source, want string }{
		"unknown command":    {`Format-Volume`, "no such command"},
		"unknown parameter":  {`show -Other 1`, "no parameter -other"},
		"twice":              {`show -Name a -Name b`, "set twice"},
		"too many":           {`show a b c`, "3 arguments"},
		"command fails":      {`Get-Disk -Number 4`, "get-disk: no such disk"},
		"fails in a string":  {`"$(Get-Disk -Number 4)"`, "no such disk"},
		"not a block":        {`Get-Disk | Where-Object a`, "not a script block"},
		"no properties":      {`show a | Select-Object b`, "no properties"},
		"several in JSON":    {`Get-Disk | ConvertTo-Json`, "one object"},
		"doubled endlessly":  {`$a = @(1, 2)` + strings.Repeat("\n$a = @($a; $a)", 40), "too much"},
		"doubled text":       {`$a = "ab"` + strings.Repeat("\n$a = \"$a$a\"", 40), "too much"},
		"filters in filters": {strings.Repeat("Get-Disk | Where-Object { ", 20) + "1" + strings.Repeat(" }", 20), "too much"},
	} {
		t.Run(name, func(t *testing.T) {
			script, err := Parse(test.source)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := machine().Run(script, nil); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s\ngives %v, want an error with %q", test.source, err, test.want)
			}
		})
	}
}

// FuzzParse: no text makes the parser or a script fail in another way than with an error, and
// every script ends.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"& { $global:ProgressPreference = 'SilentlyContinue'; (Get-VHD -Path C:\\a\\b.vhdx).DiskNumber }",
		"$address = $(Get-Disk | Where-Object { $_.A -eq \"Ethernet\" -and $_.B -eq \"IPv4\" }).IPAddress",
		"$o = @{\n \"iqn\" = \"$($target.TargetIqn)\"\n \"ip\"  = $address\n}\n$o | ConvertTo-Json | Write-Output",
		"show -Name ($a, ${b}) -Force -Size:100MB # comment\n@(\"Iqn:*\")",
		"`", "$", "${", "@{", "@(", "\"$(", "-", "'", "1kb.x", "& {",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, source string) {
		script, err := Parse(source)
		if err != nil {
			if len(script.statements) != 0 {
				t.Errorf("a script with the error %v", err)
			}
			return
		}
		values, err := machine().Run(script, []string{"USERNAME=someone"})
		if err != nil && values != nil {
			t.Errorf("values with the error %v", err)
		}
		_ = Print(values)
	})
}
