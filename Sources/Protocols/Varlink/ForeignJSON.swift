// What other people's servers answer, and files that time may have damaged: JSON read without trust. A value that is not what is
// wanted is nil, and a text has nothing in it that a terminal obeys.

extension JSONNode {
  /// A whole body; nil where it is no JSON.
  init?(foreign body: [UInt8]) {
    guard let node = try? body.withUnsafeBytes({ try JSONNode($0) }) else { return nil }
    self = node
  }

  var float: Double? { document.float(index) }
  var whole: Int? { document.whole(index) }

  /// A string as it is.
  var text: String? { kind == .plain || kind == .coded ? try? document.text(index) : nil }

  /// The elements of a list, none where it is none.
  var elements: [JSONNode] {
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
