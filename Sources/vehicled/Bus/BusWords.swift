// What went wrong on the message bus, in a person's words. The names of errors are those of the D-Bus specification.

import Bus

extension BusError {
  /// What is wrong, without advice.
  var words: String {
    switch self {
    case .disconnected(let reason): printable(reason)
    case .timeout: "no answer"
    case .refused(let name, let text):
      text.isEmpty ? printable(name.split(separator: ".").last ?? "refused") : printable(text.prefix(1).lowercased() + text.dropFirst())
    case .unsendable(let what): "cannot ask for \(printable(what))"
    case .malformed(let what): "an answer that makes no sense: \(printable(what))"
    }
  }
}
