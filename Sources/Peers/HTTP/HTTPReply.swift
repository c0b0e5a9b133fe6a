// An HTTP/1.1 reply with Content-Length and `Connection: close`. It adds no other fields by default, because the toy searches the
// header for data. Source: RFC 9112, RFC 9110 §8.6 (a 204 has no length).

import Protocols

/// A reply of a server.
struct HTTPReply: Sendable, Equatable {
  static let json = "application/json; charset=utf-8"

  var status: Int
  /// The Content-Type, or nil for none.
  var type: String?
  var body: [UInt8]
  /// Additional header fields, sent in the order of their names.
  var fields: [String: String]
  /// Whether the body contains secrets, which must not be logged.
  var isSecret = false

  init(_ status: Int, _ body: String = "", type: String? = HTTPReply.json, fields: [String: String] = [:]) {
    (self.status, self.type, self.body, self.fields) = (status, type, Array(body.utf8), fields)
  }

  /// Header and body.
  var bytes: [UInt8] {
    var header = "HTTP/1.1 \(status) \(Self.reasons[status] ?? "Unknown")\r\n"
    if let type { header += "Content-Type: \(type)\r\n" }
    if status != 204 { header += "Content-Length: \(body.count)\r\n" }
    for (name, value) in fields.sorted(by: { $0.key < $1.key }) { header += "\(name): \(value)\r\n" }
    return Array("\(header)Connection: close\r\n\r\n".utf8) + (status == 204 ? [] : body)
  }

  private static let reasons = [
    200: "OK", 201: "Created", 204: "No Content", 302: "Found", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found",
    405: "Method Not Allowed", 408: "Request Timeout", 411: "Length Required", 413: "Content Too Large", 429: "Too Many Requests",
    431: "Request Header Fields Too Large", 500: "Internal Server Error", 503: "Service Unavailable",
  ]
}
