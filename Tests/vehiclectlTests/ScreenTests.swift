// The screen module: cells, the bytes from one frame to the next, and keys.

import Testing

@testable import vehiclectl

/// A terminal that understands the sequences of `FrameDiff`, and rejects all others.
private struct MockTerminal {
  private(set) var grid: Grid
  private var (x, y) = (0, 0)
  private var role = StyleRole.plain
  private static let roles = Dictionary(
    uniqueKeysWithValues: [StyleRole.plain, .bold, .dim, .good, .warn, .bad, .accent, .title, .inverse].map { ($0.sequence, $0) })

  init(columns: Int, rows: Int) { grid = Grid(columns: columns, rows: rows) }

  mutating func show(_ bytes: [UInt8]) throws {
    var rest = Array(String(decoding: bytes, as: UTF8.self).unicodeScalars)[...]
    while let scalar = rest.popFirst() {
      switch scalar {
      case "\u{1b}":
        let length = try #require(rest.dropFirst().firstIndex { ("@"..."~").contains($0) }, "an open sequence")
        apply(String(String.UnicodeScalarView(rest[...length])))
        rest = rest[(length + 1)...]
      case "\r": x = 0
      case "\n": y += 1
      default: x = grid.put(String(scalar), x, y, role)
      }
    }
  }

  private mutating func apply(_ sequence: String) {
    let numbers = sequence.dropFirst().dropLast().split(separator: ";").compactMap { Int($0) }
    switch sequence.last {
    case "m": role = Self.roles["\u{1b}\(sequence)"] ?? .plain
    case "H": (y, x) = ((numbers.first ?? 1) - 1, (numbers.dropFirst().first ?? 1) - 1)
    case "C": x += numbers.first ?? 1
    case "K": for column in x..<grid.columns { grid.put(" ", column, y) }
    case "J": grid = Grid(columns: grid.columns, rows: grid.rows)
    case "h", "l": break  // synchronized output
    default: Issue.record("unknown sequence \(sequence)")
    }
  }
}

@Suite struct ScreenTests {
  @Test func `text is cut at the edges and at its width, with an ellipsis`() {
    var grid = Grid(columns: 8, rows: 2)
    #expect(grid.put("abc", 0, 0) == 3)
    #expect(grid.put("defghijk", 3, 0) == 8)
    #expect(grid.line(0) == "abcdefg…")
    grid.put("value", 0, 1, width: 3)
    #expect(grid.line(1) == "va…")
    grid.putRight("12", before: 8, 1, width: 4)
    #expect(grid.line(1) == "va…   12")
    for (x, y) in [(8, 0), (-1, 0), (0, 2), (0, -1)] { grid.put("x", x, y) }
    #expect(grid.line(0) == "abcdefg…")
    #expect(Grid(columns: 0, rows: -3).cells.count == 1)
  }

  @Test func `wide characters take two cells, marks and control characters none or a space`() {
    var grid = Grid(columns: 6, rows: 1)
    #expect(grid.put("日本", 0, 0) == 4)
    #expect(grid.put("e\u{301}\u{1b}", 4, 0) == 6)
    #expect(grid.line(0) == "日本e")
    grid.put("x", 1, 0)  // the second half of the first character
    #expect(grid.line(0) == " x本e")
    grid.put("日本語日", 0, 0)
    #expect(grid.line(0) == "日本…")
  }

  @Test func `only changed cells are written, an equal frame not at all`() {
    var one = Grid(columns: 20, rows: 3)
    one.put("speed   50 km/h", 0, 1)
    var other = one
    other.put("1", 9, 1)
    #expect(FrameDiff.bytes(from: one, to: one, colour: true).isEmpty)
    let bytes = String(decoding: FrameDiff.bytes(from: one, to: other, colour: true), as: UTF8.self)
    #expect(bytes == "\u{1b}[?2026h\u{1b}[2;10H1\u{1b}[?2026l")
    // Without colour the look of a cell is no change.
    other = one
    other.paint(.bad, 0, 1, width: 5)
    #expect(FrameDiff.bytes(from: one, to: other, colour: false).isEmpty && !FrameDiff.bytes(from: one, to: other, colour: true).isEmpty)
    #expect(!String(decoding: FrameDiff.bytes(from: nil, to: other, colour: false), as: UTF8.self).contains("31m"))
  }

  @Test func `a terminal shows each of a thousand random frames`() throws {
    var random = Randomness(seed: 7)
    for colour in [true, false] {
      var terminal = MockTerminal(columns: 24, rows: 6)
      var shown: Grid?
      var frame = Grid(columns: 24, rows: 6)
      for number in 0..<1000 {
        if number % 50 == 0 { frame = Grid(columns: 24, rows: 6) }
        for _ in 0..<(random.next() % 4) {
          let text = ["x", "a longer text", "日本", "▁▂▃", "      ", "é"][Int(random.next() % 6)]
          let role = [StyleRole.plain, .good, .bad, .inverse, .dim][Int(random.next() % 5)]
          frame.put(text, Int(random.next() % 24), Int(random.next() % 6), role)
        }
        try terminal.show(FrameDiff.bytes(from: shown, to: frame, colour: colour))
        for y in 0..<6 { #expect(terminal.grid.line(y) == frame.line(y), "frame \(number), row \(y)") }
        // The look of spaces is visible only if they are inverse.
        let looks = zip(terminal.grid.cells, frame.cells).allSatisfy { $0.isBlank && $1.isBlank || $0.role == (colour ? $1.role : .plain) }
        #expect(looks, "frame \(number)")
        shown = frame
      }
    }
  }

  @Test func `keys are decoded across split input, garbage is ignored`() {
    let input =
      "aü日\u{1b}[A\u{1b}OB\u{1b}[1;5C\u{1b}[D\u{1b}[5~\u{1b}[6;2~\u{1b}[H\u{1b}[4~\t\u{1b}[Z\r\u{7f}\u{3}"
      + "\u{1b}[200~\u{1b}[?1;2c\u{1b}]0;title\u{7}\u{1b}P1$r\u{1b}\\\u{1b}[99;99;99;99;99;99;99;99;99X\u{1b}[<35;1;1Mz"
    let expected: [KeyPress] = [
      .character("a"), .character("ü"), .character("日"), .up, .down, .right, .left, .pageUp, .pageDown, .home, .end, .tab, .backTab, .enter,
      .backspace, .control("C"), .character("z"),
    ]
    let bytes = Array(input.utf8)
    for cut in 0...bytes.count {
      var keys = KeyDecoder()
      #expect(keys.decode(bytes[..<cut]) + keys.decode(bytes[cut...]) == expected, "cut at \(cut)")
    }
    var keys = KeyDecoder()
    #expect(keys.decode([0xFF, 0xC3, 0x41, 0x80, 0xE2, 0x82, 0x1B]) == [.character("A")])
    #expect(keys.finishEscape() == .escape && keys.finishEscape() == nil)
    #expect(keys.decode(Array("[".utf8)) == [.character("[")])
  }
}

/// A sequence of numbers that is the same in every run.
struct Randomness {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
    return state >> 33
  }
}
