// Untrusted JSON: responses of other servers, and files that may be corrupt. A value of an unexpected type is nil.

extension JSONNode {
  /// Parses a whole body; nil if it is not JSON.
  package init?(untrusted body: [UInt8]) {
    guard let node = try? body.withUnsafeBytes({ try JSONNode($0) }) else { return nil }
    self = node
  }

  package var float: Double? { document.float(index) }
  package var int: Int? { document.int(index) }

  /// The string; nil if the value is not one. It may contain control characters.
  package var text: String? { kind == .plain || kind == .coded ? try? document.text(index) : nil }

  /// The elements of a list; empty if the value is not a list.
  package var elements: [JSONNode] {
    guard kind == .array else { return [] }
    var found: [JSONNode] = []
    var next = index + 1
    while next < document.nodes[index].after {
      found.append(JSONNode(document, next, outermost: nil))
      next = document.nodes[next].after
    }
    return found
  }
}
