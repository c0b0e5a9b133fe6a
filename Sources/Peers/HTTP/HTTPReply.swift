// One reply of HTTP/1.1 as it goes out: always with its length, and always the last of its connection. It must never say a
// field that was not asked for: some clients read the head as well.
// Facts: RFC 9112, RFC 9110 §8.6 (a 204 has no length).

import Protocols

/// What a server answers.
struct HTTPReply: Sendable, Equatable {
  static let json = "application/json; charset=utf-8"

  var status: Int
  /// Of the body; nil: it is not said.
  var type: String?
  var body: [UInt8]
  /// Said in the order of their names.
  var fields: [String: String]
  /// What is in the body is for nobody but the client: it is sent as a secret.
  var isSecret = false

  init(_ status: Int, _ body: String = "", type: String? = HTTPReply.json, fields: [String: String] = [:]) {
    (self.status, self.type, self.body, self.fields) = (status, type, Array(body.utf8), fields)
  }

  /// All of it, for one write.
  var bytes: [UInt8] {
    var head = "HTTP/1.1 \(status) \(Self.words[status] ?? "Unknown")\r\n"
    if let type { head += "Content-Type: \(type)\r\n" }
    if status != 204 { head += "Content-Length: \(body.count)\r\n" }
    for (name, value) in fields.sorted(by: { $0.key < $1.key }) { head += "\(name): \(value)\r\n" }
    return Array("\(head)Connection: close\r\n\r\n".utf8) + (status == 204 ? [] : body)
  }

  private static let words = [
    200: "OK", 201: "Created", 204: "No Content", 302: "Found", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found",
    405: "Method Not Allowed", 408: "Request Timeout", 411: "Length Required", 413: "Content Too Large", 429: "Too Many Requests",
    431: "Request Header Fields Too Large", 500: "Internal Server Error", 503: "Service Unavailable",
  ]
}
