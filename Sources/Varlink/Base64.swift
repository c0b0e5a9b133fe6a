// Base64 (RFC 4648 §4, with padding) for the binary output of actions.

import FoundationEssentials
import Protocols

/// Base64 text of bytes.
public enum Base64 {
  public static func encode(_ bytes: [UInt8]) -> String { Data(bytes).base64EncodedString() }
  /// Decodes text; nil if it is not Base64.
  public static func decode(_ text: String) -> [UInt8]? { Data(base64Encoded: text).map { [UInt8]($0) } }
}
