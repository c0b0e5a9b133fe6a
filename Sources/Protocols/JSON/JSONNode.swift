// The values of a parsed message. The module Varlink adapts a value to the standard library's Decoder.

/// A value in a message.
package struct JSONNode: Sendable {
  package let document: JSONDocument
  package let index: Int
  /// The member of `root` that contains this value.
  package var outermost: (any CodingKey)?

  /// Parses a whole message.
  package init(_ message: UnsafeRawBufferPointer) throws(JSONSyntax) {
    document = try JSONDocument(message)
    index = 0
  }

  /// `{}`, for messages without parameters.
  package static let empty: JSONNode = {
    do { return try Array("{}".utf8).withUnsafeBytes { try JSONNode($0) } } catch { preconditionFailure("{} is JSON: \(error)") }
  }()

  package init(_ document: JSONDocument, _ index: Int, outermost: (any CodingKey)?) {
    self.document = document
    self.index = index
    self.outermost = outermost
  }

  package var kind: JSONDocument.Kind { document.nodes[index].kind }
  /// The value as the root of a coding path.
  package var root: JSONNode { JSONNode(document, index, outermost: nil) }

  /// The member of an object; nil if it is absent or null.
  package subscript(_ key: String) -> JSONNode? {
    guard kind == .object, let member = document.member(key, of: index) else { return nil }
    let node = JSONNode(document, member, outermost: outermost ?? AnyKey(stringValue: key))
    return node.kind == .null ? nil : node
  }

  package var keys: [String] { kind == .object ? document.members(of: index).map(\.key) : [] }
}

/// Any key of an object.
package struct AnyKey: CodingKey {
  package var stringValue: String
  package var intValue: Int? { nil }

  package init(stringValue: String) { self.stringValue = stringValue }
  package init?(intValue: Int) { nil }
}
