// The types of the contract as JSON text, for programs that store them.

import Protocols

extension VarlinkParameters {
  /// The value as JSON.
  public var json: String {
    do { return String(decoding: try Coders.message(self).dropLast(), as: UTF8.self) } catch {
      preconditionFailure("the types of the contract can be encoded: \(error)")
    }
  }

  /// Decodes JSON. Unknown members are ignored, for text that a later version has written.
  public init(json: String) throws(VarlinkViolation) {
    var json = json
    let result = json.withUTF8 { bytes in
      Swift.Result { () throws -> Self in try Self(from: JSONNode(UnsafeRawBufferPointer(bytes))) }
    }
    do { self = try result.get() } catch { throw VarlinkViolation(Coders.describe(error)) }
  }
}
