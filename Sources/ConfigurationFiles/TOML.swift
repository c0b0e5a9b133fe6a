// A TOML file as a tree in which every key and value records its source location. toml++ (CToml) checks the syntax;
// TableCheck checks the keys. Tables keep the order of the file.

import CToml

/// A location in a file: line and column, both 1-based; line 0 stands for the file as a whole.
public struct SourceLocation: Hashable, Sendable, CustomStringConvertible {
  public var file: String
  public var line: Int
  public var column: Int

  /// Creates a location in a file, or one for the file as a whole.
  public init(file: String, line: Int = 0, column: Int = 0) { (self.file, self.line, self.column) = (file, line, column) }

  public var description: String { line == 0 ? file : "\(file):\(line):\(column)" }
}

/// A TOML document.
public enum TOML {
  public enum Content: Sendable {
    case table(Table)
    case array([Node])
    case string(String)
    case integer(Int)
    case float(Double)
    case bool(Bool)
    case date
  }

  public struct Node: Sendable {
    public var content: Content
    public var location: SourceLocation
    /// Whether the string appears in the file without escapes, so that the column of each character is known.
    public internal(set) var isLiteral = false

    /// The location of the byte at this offset of the string, or of the whole value if the column is unknown.
    public func location(at offset: Int) -> SourceLocation {
      guard isLiteral, case .string(let text) = content else { return location }
      var inside = location
      inside.column += 1 + String(decoding: text.utf8.prefix(offset), as: UTF8.self).unicodeScalars.count
      return inside
    }
  }

  public struct Entry: Sendable {
    public var key: String
    public var location: SourceLocation
    public var value: Node
  }

  public struct Table: Sendable {
    public var entries: [Entry]

    public init(entries: [Entry] = []) { self.entries = entries }

    public subscript(key: String) -> Entry? { entries.first { $0.key == key } }

    /// Merges a later file: tables key by key; any other value replaces the earlier one.
    public mutating func merge(_ later: Table) {
      var positions = Dictionary(entries.indices.map { (entries[$0].key, $0) }, uniquingKeysWith: { first, _ in first })
      for entry in later.entries {
        guard let position = positions[entry.key] else {
          positions[entry.key] = entries.count
          entries.append(entry)
          continue
        }
        if case .table(var mine) = entries[position].value.content, case .table(let theirs) = entry.value.content {
          mine.merge(theirs)
          entries[position].value.content = .table(mine)
        } else {
          entries[position] = entry
        }
      }
    }
  }

  public struct SyntaxError: Error {
    public var location: SourceLocation
    public var text: String
  }

  /// Reads a document; `file` names it in source locations.
  public static func parse(_ bytes: [UInt8], file: String) throws(SyntaxError) -> Table {
    let document = bytes.withUnsafeBytes { ctoml_parse($0.bindMemory(to: CChar.self).baseAddress, $0.count) }
    defer { ctoml_free(document) }
    guard let nodes = document.nodes else {
      let location = SourceLocation(file: file, line: Int(max(document.error_line, 1)), column: Int(max(document.error_column, 1)))
      throw SyntaxError(location: location, text: document.error.map { String(cString: $0) } ?? "not TOML")
    }
    var tree = Tree(nodes: UnsafeBufferPointer(start: nodes, count: document.count)[...], file: file, bytes: bytes)
    guard case .table(let table) = tree.next()?.value.content else { return Table() }
    return table
  }
}

/// Builds the tree from the flat list of nodes. CToml limits the depth.
private struct Tree {
  private var remaining: Slice<UnsafeBufferPointer<ctoml_node>>
  private let file: String
  private let lines: [ArraySlice<UInt8>]

  init(nodes: Slice<UnsafeBufferPointer<ctoml_node>>, file: String, bytes: [UInt8]) {
    remaining = nodes
    self.file = file
    lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
  }

  /// Returns the next node with all nodes below it; nil at the end.
  mutating func next() -> TOML.Entry? {
    guard let node = remaining.popFirst() else { return nil }
    let location = SourceLocation(file: file, line: Int(node.line), column: Int(node.column))
    let keyLocation = SourceLocation(file: file, line: Int(node.key_line), column: Int(node.key_column))
    var value = TOML.Node(content: .date, location: location)
    switch node.kind {
    case CTOML_TABLE: value.content = .table(TOML.Table(entries: children(node.children)))
    case CTOML_ARRAY: value.content = .array(children(node.children).map(\.value))
    case CTOML_STRING:
      let string = text(node.text, node.text_length)
      value.content = .string(string)
      value.isLiteral = isLiteral(string, at: location)
    case CTOML_INTEGER: value.content = .integer(Int(node.integer))
    case CTOML_FLOAT: value.content = .float(node.number)
    case CTOML_BOOLEAN: value.content = .bool(node.integer != 0)
    default: break
    }
    return TOML.Entry(key: text(node.key, node.key_length), location: keyLocation, value: value)
  }

  private mutating func children(_ count: Int) -> [TOML.Entry] {
    var entries: [TOML.Entry] = []
    while entries.count < count, let entry = next() { entries.append(entry) }
    return entries
  }

  private func text(_ start: UnsafePointer<CChar>?, _ count: Int) -> String {
    guard let start, count > 0 else { return "" }
    return String(decoding: UnsafeRawBufferPointer(start: start, count: count), as: UTF8.self)
  }

  /// Whether the file contains the string at this location in quotes and without escapes.
  private func isLiteral(_ string: String, at location: SourceLocation) -> Bool {
    guard location.line >= 1, location.line <= lines.count, location.column >= 1 else { return false }
    // Columns count code points; every byte that is not a UTF-8 continuation begins one.
    var columnsLeft = location.column
    let line = lines[location.line - 1].drop { byte in
      if byte & 0xC0 != 0x80 { columnsLeft -= 1 }
      return columnsLeft > 0
    }
    guard let quote = line.first, quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'") else { return false }
    let inside = line.dropFirst()
    return inside.starts(with: string.utf8) && inside.dropFirst(string.utf8.count).first == quote
  }
}
