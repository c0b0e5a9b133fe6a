// Tables, text and frames: aligned at any width, and harmless to the terminal.

import Protocols
import Testing
import Varlink

@testable import vehiclectl

@Suite struct TableTests {
  @Test func `columns are aligned, wide characters and missing cells too, without spaces at the end`() {
    var table = Table("property", ">value", "unit", ">rate", "")
    table.rows = [["mode", "eco 漢字", "", "", ""], ["rpm", "-1", "rpm", "20.0/s", ""], ["e\u{301}", "", "", "1.0/s", ""], ["x"]]
    #expect(
      table.lines(indent: 2) == [
        "  property     value  unit    rate",
        "  mode      eco 漢字",
        "  rpm             -1  rpm   20.0/s",
        "  e\u{301}" + String(repeating: " ", count: 26) + "1.0/s",
        "  x",
      ])
    for line in table.lines() { #expect(line.last != " ") }
  }

  @Test func `empty columns are omitted`() {
    var table = Table("a", "b", "c")
    table.rows = [["1", "", "3"]]
    #expect(table.lines() == ["a  c", "1  3"])
  }

  @Test func `rows without titles have none`() {
    #expect(Table(titles: [], rows: [["a", "b"], ["ccc"]]).lines() == ["a    b", "ccc"])
    #expect(Table(titles: ["code"], rows: [["P0420", "catalyst"]]).lines() == ["code", "P0420  catalyst"])
    #expect(Table(titles: [], rows: []).lines().isEmpty)
  }

  @Test func `colours do not change widths`() {
    var table = Table("a", ">b")
    table.rows = [[Cell("x", .dim), Cell("1", .bad)]]
    #expect(table.lines { "<\($0)|\($1.rawValue)>" } == ["<a|1>  <b|1>", "<x|2>  <1|31>"])
  }

  @Test func `lines are cut to the window, colours are closed`() {
    #expect("abcdef".cut(to: 3) == "abc")
    #expect("a漢字".cut(to: 4) == "a漢")
    #expect("\u{1b}[1mabc\u{1b}[0m def".cut(to: 2) == "\u{1b}[1mab\u{1b}[0m")
  }

  @Test func `texts from devices cannot control the terminal`() {
    #expect(Cell("a\u{1b}[2Jb\n").text == "a [2Jb ")
    #expect(Output.oneLine("\u{9b}31mx\u{7f}") == " 31mx ")
  }

  @Test func `the last column wraps at the width of the terminal`() {
    var table = Table("name", "")
    table.rows = [["cells", "3.76; 3.76; 3.76; 3.78"], ["rpm", "short"]]
    #expect(table.lines(indent: 2, width: 26) == ["  name", "  cells  3.76; 3.76; 3.76;", "         3.78", "  rpm    short"])
    // Without room for the last column, its text is below, and no word is cut.
    #expect(
      table.lines(indent: 2, width: 22) == ["  name", "  cells", "      3.76; 3.76;", "      3.76; 3.78", "  rpm    short"])
  }

  @Test func `a name loses its middle, because names differ at their ends`() {
    #expect("tyre-pressure-front-left".shortened(to: 14) == "tyre-pr…t-left" && "rpm".shortened(to: 3) == "rpm")
    #expect("日本語日本語".shortened(to: 7) == "日…本語" || "日本語日本語".shortened(to: 7).displayWidth <= 7)
    #expect("abcdef".shortened(to: 2) == "a…" && "abcdef".shortened(to: 3) == "a…f")
  }

  @Test(arguments: [
    (12.345678, "12.346"), (12345.67, "12345.7"), (0.99871, "0.99871"), (3.8, "3.8"), (20, "20"), (-0.000123456, "-0.00012346"),
    (1e-7, "1e-07"), (1e12, "1000000000000"),
  ])
  func `views show no more digits than matter`(_ number: Double, _ text: String) {
    #expect(Format.rounded(number) == text)
  }

  @Test func `positions are shown to a metre`() {
    #expect(Format.view(.float(63.4307979), of: "latitude") == "63.4308" && Format.view(.float(-10.39512), of: "longitude") == "-10.39512")
    #expect(Format.view(.float(63.4307979), of: "track") == "63.431" && Format.view(.int(63), of: "latitude") == "63")
  }

  @Test func `list entries may contain commas`() {
    #expect(Format.text(.list(["P0301, pending", "P0420"])) == "P0301, pending; P0420" && Format.text(.list([])).isEmpty)
    #expect(Format.text(.bool(true)) == "on" && Format.text(.string("a,b")) == "a,b")
  }

  @Test(arguments: [
    (0, "0.0 s"), (0.04, "0.0 s"), (0.05, "0.1 s"), (9.94, "9.9 s"), (9.96, "10 s"), (119, "119 s"), (120, "2 min"), (7200, "2 h"),
    (172_800, "2 d"),
    (-5, "0.0 s"), (1e300, "years"), (.infinity, "years"), (.nan, "0.0 s"),
  ])
  func `durations are short`(_ seconds: Double, _ words: String) {
    #expect(Format.duration(seconds) == words)
  }

  @Test func `a link shows its state, duration, reason and next attempt`() {
    let link = Contract.Link(
      name: "main", url: "tcp:h:1", state: "down", reason: "adapter not found: check its power", since: 88_000_000, nextAttempt: 104_500_000
    )
    #expect(Format.link(link, now: 100) == "down for 12 s: adapter not found: check its power; next attempt in 4.5 s")
    let hostile = Contract.Link(name: "", url: "", state: "up", since: .min, nextAttempt: .max)
    #expect(Format.link(hostile, now: 100) == "up for years; next attempt in years")
  }
}
