// Any JSON value, for data without a type of its own: the parameters of errors, hand-written calls, and the output of
// vehiclectl. Objects keep the order of their members.

/// Any JSON value.
public enum JSON: Equatable, Sendable {
  case null
  case bool(Bool)
  case int(Int)
  case float(Double)
  case string(String)
  case array([JSON])
  case object([Member])

  /// A member of an object.
  public struct Member: Equatable, Sendable {
    public var key: String
    public var value: JSON

    public init(key: String, value: JSON) { (self.key, self.value) = (key, value) }
  }

  /// The value of this member; nil if it is absent or the value is not an object.
  public subscript(_ key: String) -> JSON? {
    if case .object(let members) = self { members.first { $0.key == key }?.value } else { nil }
  }

  /// The string, or nil if the value is not one.
  public var string: String? {
    if case .string(let value) = self { value } else { nil }
  }

  /// Returns an object with the members that are not nil.
  public static func members(_ members: KeyValuePairs<String, JSON?>) -> JSON {
    .object(members.compactMap { member in member.value.map { Member(key: member.key, value: $0) } })
  }

  /// Returns an object whose members are strings, sorted by key.
  public static func texts(_ texts: [String: String]) -> JSON {
    .object(texts.sorted { $0.key < $1.key }.map { Member(key: $0.key, value: .string($0.value)) })
  }

  /// The value as JSON in one line, without spaces. A number that is not finite becomes null.
  public var text: String {
    var bytes: [UInt8] = []
    write(to: &bytes)
    return String(decoding: bytes, as: UTF8.self)
  }

  private func write(to out: inout [UInt8]) {
    switch self {
    case .null: out.append(ascii: "null")
    case .bool(let value): out.append(ascii: value ? "true" : "false")
    case .int(let value): out.append(json: value)
    case .float(let value): if value.isFinite { out.append(json: value) } else { out.append(ascii: "null") }
    case .string(let value): out.append(json: value)
    case .array(let values):
      out.append(UInt8(ascii: "["))
      for (position, value) in values.enumerated() {
        if position > 0 { out.append(UInt8(ascii: ",")) }
        value.write(to: &out)
      }
      out.append(UInt8(ascii: "]"))
    case .object(let members):
      out.append(UInt8(ascii: "{"))
      for (position, member) in members.enumerated() {
        if position > 0 { out.append(UInt8(ascii: ",")) }
        out.append(json: member.key)
        out.append(UInt8(ascii: ":"))
        member.value.write(to: &out)
      }
      out.append(UInt8(ascii: "}"))
    }
  }
}

extension JSON: ExpressibleByDictionaryLiteral {
  public init(dictionaryLiteral members: (String, JSON)...) {
    self = .object(members.map { Member(key: $0.0, value: $0.1) })
  }
}

extension JSON {
  /// The value of a node. Throws for an invalid string and for a number beyond the range of `Double`.
  package init(_ node: JSONNode) throws(JSONSyntax) {
    switch node.kind {
    case .null: self = .null
    case .true: self = .bool(true)
    case .false: self = .bool(false)
    case .plain, .coded: self = .string(try node.document.text(node.index))
    case .integer, .number:
      if node.kind == .integer, let number = node.document.int(node.index) {
        self = .int(number)
      } else {
        guard let number = node.float else { throw JSONSyntax(message: "a number is too large") }
        self = .float(number)
      }
    case .array: self = .array(try node.elements.map(JSON.init(_:)))
    case .object:
      self = .object(
        try node.document.members(of: node.index).map { key, value throws(JSONSyntax) in
          Member(key: key, value: try JSON(JSONNode(node.document, value, outermost: node.outermost)))
        })
    }
  }

  /// Parses text; nil if it is not JSON, or nested too deeply.
  public init?(_ text: String) {
    guard let value = try? Array(text.utf8).withUnsafeBytes({ try JSON(try JSONNode($0)) }) else { return nil }
    self = value
  }
}
