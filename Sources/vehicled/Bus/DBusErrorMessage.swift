// Messages for errors of the message bus. The error names are those of the D-Bus specification.

import DBus
import ServiceRuntime

extension DBusError {
  /// The cause, without a remedy.
  var message: String {
    switch self {
    case .disconnected(let reason): printable(reason)
    case .timeout: "no reply"
    case .refused(let name, let text):
      text.isEmpty ? printable(name.split(separator: ".").last ?? "refused") : printable(text.prefix(1).lowercased() + text.dropFirst())
    case .unsendable(let what): "cannot send the request: \(printable(what))"
    case .malformed(let what): "malformed reply: \(printable(what))"
    }
  }
}
