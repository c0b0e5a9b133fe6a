// Base64 (RFC 4648 §4, with padding) for the binary output of actions.

import FoundationEssentials

/// Bytes as text.
public enum Base64 {
  /// The text of these bytes.
  public static func encode(_ bytes: [UInt8]) -> String { Data(bytes).base64EncodedString() }
  /// The bytes of this text, or nil when it is none.
  public static func decode(_ text: String) -> [UInt8]? { Data(base64Encoded: text).map { [UInt8]($0) } }
}
