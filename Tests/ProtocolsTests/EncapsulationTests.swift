// State is private to the type that owns it: in the folders of the decomposed kinds no stored property can be set from another file.

import Foundation
import Testing

@Suite("Encapsulation") struct EncapsulationTests {
  /// The folders of Sources/Protocols in which the rule holds.
  private static let folders = ["OBD", "Car", "Longboard"]

  @Test(arguments: folders) func `stored properties cannot be set from another file`(_ folder: String) throws {
    let sources = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../../Sources/Protocols/\(folder)")
      .standardized
    let files = try #require(FileManager.default.enumerator(atPath: sources.path)?.compactMap { $0 as? String })
    let swift = files.filter { $0.hasSuffix(".swift") }
    #expect(swift.count > 10)
    for file in swift.sorted() {
      let text = try String(contentsOf: sources.appendingPathComponent(file), encoding: .utf8)
      let names = try #require(Self.settable(in: text), "\(file): unbalanced braces")
      #expect(names.isEmpty, "\(folder)/\(file): make these private, private(set), or let: \(names.joined(separator: ", "))")
    }
  }

  @Test func `the search finds settable properties only`() {
    let text = #"""
      struct Machine {
        var open = 1
        private var closed = "{"
        private(set) var readable: [Int] = []
        var computed: Int { closed.count }
        let fixed = { 2 }
        struct Nested
        where Int: Sendable {
          public internal(set) var wide: Int
          var (left, right) = (1, 2)
          var both: Int = { 3 }()
        }
        func run() {
          var local = "\(closed.map { "\($0)" })"
          local += "x"
        }
      }
      """#
    #expect(Self.settable(in: text) == ["open", "wide", "(left, right)", "both"])
  }

  /// The names of the stored properties that other files can set, or nil if the braces do not balance.
  private static func settable(in text: String) -> [String]? {
    let type = /\b(struct|enum|class|actor|extension|protocol)\s+\w/
    let property = /^\s*((?:[@\w]+(?:\([^)]*\))?\s+)*)var\s*(\w+|\([^)]*\))([^{]*)(\{?)/
    // For each open brace, whether it is that of a type.
    var scopes: [Bool] = []
    // The text since the last brace.
    var head = ""
    var names: [String] = []
    for line in withoutStrings(text).split(separator: "\n") {
      if scopes.last == true, let match = line.firstMatch(of: property) {
        let (modifiers, rest, brace) = (match.1, match.3, match.4)
        let isComputed = !brace.isEmpty && !rest.contains("=")
        if !isComputed, !modifiers.contains("private") { names.append(String(match.2)) }
      }
      for character in line {
        switch character {
        case "{": scopes.append(head.contains(type))
        case "}": guard scopes.popLast() != nil else { return nil }
        default:
          head.append(character)
          continue
        }
        head = ""
      }
      head.append(" ")
    }
    return scopes.isEmpty ? names : nil
  }

  /// The text without comments, and with empty string literals.
  private static func withoutStrings(_ text: String) -> String {
    var result = ""
    // The parentheses that are open in each interpolation around this place; nil: this is a literal.
    var stack: [Int?] = [0]
    var rest = text[...]
    while let character = rest.first {
      let depth = stack[stack.count - 1]
      switch (depth, character) {
      case (nil, "\\") where rest.dropFirst().first == "(":
        stack.append(0)
        rest = rest.dropFirst(2)
        continue
      case (nil, "\\"):
        rest = rest.dropFirst(2)
        continue
      case (nil, "\""): stack.removeLast()
      case (nil, _): break
      case (_?, "/") where rest.hasPrefix("//") && stack.count == 1:
        rest = rest.drop { $0 != "\n" }
        continue
      case (_?, "\"") where rest.hasPrefix(#"""""#):
        rest = rest.dropFirst(3)
        while !rest.isEmpty, !rest.hasPrefix(#"""""#) { rest = rest.dropFirst() }
        rest = rest.dropFirst(3)
        continue
      case (_?, "\""): stack.append(nil)
      case (let open?, "("): stack[stack.count - 1] = open + 1
      case (let open?, ")") where stack.count > 1 && open == 0:
        stack.removeLast()
      case (let open?, ")"): stack[stack.count - 1] = open - 1
      default: break
      }
      if stack.count == 1, depth != nil { result.append(character) }
      rest = rest.dropFirst()
    }
    return result
  }
}
