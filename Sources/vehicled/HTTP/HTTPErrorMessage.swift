// Error messages for invalid and failed HTTP requests. Only the host and port of a URL may appear in a message, because the rest can
// contain credentials and personal data.

import CCurl
import Glibc
import Protocols
import ServiceRuntime

enum HTTPErrorMessage {
  /// The part of a response that exceeded its limit.
  enum Excess { case head, body }

  struct Failure {
    var code: CURLcode
    var excess: Excess?
    /// Whether the connection was established.
    var isConnected: Bool
    /// The errno of a failed connection, or 0.
    var connectErrno: CInt
    /// The status of a proxy's response to CONNECT, or 0.
    var proxyStatus: Int
    /// libcurl's error message, which is used only for TLS errors.
    var tlsMessage: String
  }

  private static let maxURLLength = 8192
  private static let maxHeaderLength = 8192
  private static let maxHeaders = 64

  /// The message for an invalid request; nil if the request is valid.
  static func problem(with request: HTTPRequest) -> String? {
    guard !request.method.isEmpty, request.method.utf8.count <= 16, request.method.utf8.allSatisfy(isUpperCaseLetter) else {
      return "invalid HTTP method; use upper-case letters, as in GET"
    }
    guard isURL(request.url), hostAndPort(of: request.url) != nil else {
      return "invalid URL; write http:// or https:// and a host, and percent-encode spaces, control characters and non-ASCII characters"
    }
    if let proxy = request.proxy, !proxy.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) || proxy.utf8.count > maxURLLength {
      return "invalid proxy; write a URL, as in http://192.168.0.1:3128"
    }
    guard request.headers.count <= maxHeaders else { return "invalid request: more than \(maxHeaders) headers" }
    for (name, value) in request.headers.sorted(by: { $0.key < $1.key }) {
      guard !name.isEmpty, name.utf8.allSatisfy(isToken) else { return "invalid request: invalid header name" }
      guard value.utf8.count <= maxHeaderLength, value.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }) else {
        return "invalid request: header \(printable(name, limit: 40)) contains a control character or is too long"
      }
    }
    if request.body.count > HTTPTransfer.maxBodySize { return "invalid request: body larger than 1 MiB" }
    return nil
  }

  private static func isURL(_ text: String) -> Bool {
    let start = text.prefix(8).lowercased()
    return (start.hasPrefix("http://") || start == "https://") && text.utf8.count <= maxURLLength
      && text.utf8.allSatisfy { (0x21...0x7E).contains($0) }
  }

  private static func isUpperCaseLetter(_ byte: UInt8) -> Bool { (0x41...0x5A).contains(byte) }

  /// Whether a token may contain this byte. Source: RFC 9110, section 5.6.2.
  private static func isToken(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
    default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
    }
  }

  /// The host and port of a URL; nil if it has no host.
  static func hostAndPort(of url: String) -> String? {
    let parts = url.split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false)
    guard parts.count > 2, parts[0].hasSuffix(":"), parts[1].isEmpty else { return nil }
    let authority = parts[2].prefix { !"?#\\".contains($0) }
    let hostAndPort = authority.split(separator: "@", omittingEmptySubsequences: false).last ?? ""
    return hostAndPort.isEmpty || hostAndPort.hasPrefix(":") ? nil : printable(hostAndPort, limit: 100)
  }

  /// The media type in a Content-Type header, in lower case and without parameters, for example `application/json`; nil if it is invalid.
  static func mediaType(_ text: String) -> String? {
    let type = text.prefix { $0 != ";" }.drop { $0 == " " || $0 == "\t" }.prefix { $0 != " " && $0 != "\t" }.lowercased()
    let parts = type.split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count == 2, type.utf8.count <= 100, parts.allSatisfy({ !$0.isEmpty && $0.utf8.allSatisfy(isToken) }) else { return nil }
    return type
  }

  /// The message for a failed request.
  static func message(for failure: Failure, of request: HTTPRequest) -> String {
    let server = hostAndPort(of: request.url) ?? "the server"
    switch failure.excess {
    case .body: return tooLong(server, request)
    case .head: return "\(server) sent more than 64 KiB of headers; check the URL"
    case nil: break
    }
    if failure.proxyStatus >= 300 {
      return "the proxy rejected the connection to \(server): status \(failure.proxyStatus); check its settings"
    }
    switch failure.code {
    case CURLE_COULDNT_RESOLVE_HOST: return "cannot resolve \(server); check the spelling, and that the network is up"
    case CURLE_COULDNT_RESOLVE_PROXY: return "cannot resolve the proxy; check the spelling, and that the network is up"
    case CURLE_COULDNT_CONNECT:
      let reason = failure.connectErrno == 0 ? "no connection" : errnoMessage(failure.connectErrno)
      if let proxy = request.proxy, !proxy.isEmpty {
        return "cannot reach the proxy \(hostAndPort(of: proxy) ?? ""): \(reason); check the key proxy, and that the proxy is running"
      }
      return "cannot reach \(server): \(reason); check host and port, and the proxy if there is one"
    case CURLE_OPERATION_TIMEDOUT:
      guard failure.isConnected else {
        let peer = request.proxy.map { !$0.isEmpty } ?? false ? "\(server) through the proxy" : server
        return "no connection to \(peer) within \(seconds(HTTPTransfer.connectTimeout(of: request))); check host, port and network"
      }
      return "no response from \(server) within \(seconds(request.timeout)); check the network"
    case CURLE_FILESIZE_EXCEEDED: return tooLong(server, request)
    case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_ISSUER_ERROR:
      let remedy = "check the system clock, whether a proxy intercepts TLS, and that ca-certificates is installed"
      return "the certificate of \(server) is not trusted\(reason(in: failure.tlsMessage)); \(remedy)"
    case CURLE_SSL_CACERT_BADFILE: return "no CA certificates; apt install ca-certificates"
    case CURLE_SSL_CONNECT_ERROR:
      return "TLS handshake with \(server) failed\(reason(in: failure.tlsMessage)); check the port, and whether the URL needs http or https"
    case CURLE_UNSUPPORTED_PROTOCOL, CURLE_WEIRD_SERVER_REPLY:
      return "the response from \(server) is not HTTP; check the port, and whether the URL needs http or https"
    case CURLE_GOT_NOTHING: return "\(server) closed the connection without a response; try again later, or check the port"
    case CURLE_PARTIAL_FILE, CURLE_RECV_ERROR, CURLE_SEND_ERROR:
      return "\(server) closed the connection before the response was complete; try again later"
    case CURLE_URL_MALFORMAT: return "invalid URL; check its spelling"
    case CURLE_OUT_OF_MEMORY: return "out of memory"
    default: return "the request to \(server) failed: \(printable(String(cString: ccurl_error_text(failure.code)).lowercased(), limit: 80))"
    }
  }

  private static func seconds(_ time: Nanoseconds) -> String { "\(Value.text(Double(time / .millisecond) / 1000)) s" }

  private static func tooLong(_ server: String, _ request: HTTPRequest) -> String {
    "\(server) sent more than the maximum of \(request.maxLength >> 20) MiB; check the URL"
  }

  /// The reason in libcurl's message about a certificate, in parentheses. It is empty if it could contain more of a URL than the host.
  private static func reason(in text: String) -> String {
    guard !text.isEmpty, !text.utf8.contains(UInt8(ascii: "/")), !text.utf8.contains(UInt8(ascii: "?")) else { return "" }
    // The text before the colon only repeats that there is a problem with the certificate.
    let reason = text.firstIndex(of: ":").map { text[text.index(after: $0)...].drop { $0 == " " } } ?? text[...]
    return " (\(printable(reason, limit: 120)))"
  }
}
