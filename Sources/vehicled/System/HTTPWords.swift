// What is wrong with a request before it is made, and why one failed, in a person's words. It must never let out more of a
// URL than the host and port: what is asked, and the credentials that may stand in it, are nobody else's business.

import CCurl
import Glibc
import Protocols

enum HTTPWords {
  /// What there was too much of.
  enum Excess { case head, body }

  struct Failure {
    var code: CURLcode
    var excess: Excess?
    /// The system's errno of a connection that failed, or 0.
    var system: CInt
    /// What a proxy answered when it was asked for a connection, or 0.
    var proxyStatus: Int
    /// What libcurl says; only what concerns certificates is told.
    var tlsWords: String
  }

  private static let maxURLLength = 8192
  private static let maxHeaderLength = 8192
  private static let maxHeaders = 64

  /// Why a request cannot be made, or nil.
  static func trouble(with request: HTTPRequest) -> String? {
    guard !request.method.isEmpty, request.method.utf8.count <= 16, request.method.utf8.allSatisfy(isLetter) else {
      return "the request's method is no word of capital letters, as GET is"
    }
    guard isURL(request.url), host(of: request.url) != nil else {
      return "the request's URL is none that can be asked: write http:// or https://, a host, and what is no letter, digit or sign as %XX"
    }
    if let proxy = request.proxy, !proxy.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) || proxy.utf8.count > maxURLLength {
      return "the proxy is no URL: write one, as in http://192.168.0.1:3128"
    }
    guard request.headers.count <= maxHeaders else { return "the request has more than \(maxHeaders) headers" }
    for (name, value) in request.headers.sorted(by: { $0.key < $1.key }) {
      guard !name.isEmpty, name.utf8.allSatisfy(isToken) else { return "the request has a header whose name is none" }
      guard value.utf8.count <= maxHeaderLength, value.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }) else {
        return "the request's header \(printable(name, limit: 40)) has a line break or another control character in it, or is too long"
      }
    }
    if request.body.count > HTTPTransfer.maxBodySize { return "the request's body is larger than 1 MiB" }
    return nil
  }

  private static func isURL(_ text: String) -> Bool {
    let start = text.prefix(8).lowercased()
    return (start.hasPrefix("http://") || start == "https://") && text.utf8.count <= maxURLLength
      && text.utf8.allSatisfy { (0x21...0x7E).contains($0) }
  }

  private static func isLetter(_ byte: UInt8) -> Bool { (0x41...0x5A).contains(byte) }

  /// RFC 9110 §5.6.2.
  private static func isToken(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
    default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
    }
  }

  /// Host and port of a URL, and nothing else of it.
  static func host(of url: String) -> String? {
    let parts = url.split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false)
    guard parts.count > 2, parts[0].hasSuffix(":"), parts[1].isEmpty else { return nil }
    let authority = parts[2].prefix { !"?#\\".contains($0) }
    let host = authority.split(separator: "@", omittingEmptySubsequences: false).last ?? ""
    return host.isEmpty || host.hasPrefix(":") ? nil : printable(host, limit: 100)
  }

  /// `application/json` of `Application/JSON; charset=utf-8`, or nil where it is no media type.
  static func mediaType(_ text: String) -> String? {
    let type = text.prefix { $0 != ";" }.drop { $0 == " " || $0 == "\t" }.prefix { $0 != " " && $0 != "\t" }.lowercased()
    let parts = type.split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count == 2, type.utf8.count <= 100, parts.allSatisfy({ !$0.isEmpty && $0.utf8.allSatisfy(isToken) }) else { return nil }
    return type
  }

  /// Why nothing came of a request.
  static func words(_ failure: Failure, of request: HTTPRequest) -> String {
    let host = host(of: request.url) ?? "the server"
    switch failure.excess {
    case .body: return tooLong(host, request)
    case .head: return "\(host) answers with more than 64 KiB of headers: check the URL"
    case nil: break
    }
    if failure.proxyStatus >= 300 { return "the proxy answers \(failure.proxyStatus) when asked for \(host): check proxy and its access" }
    switch failure.code {
    case CURLE_COULDNT_RESOLVE_HOST: return "the name of \(host) is not known: check its spelling, and that the network is up"
    case CURLE_COULDNT_RESOLVE_PROXY: return "the name of the proxy is not known: check its spelling, and that the network is up"
    case CURLE_COULDNT_CONNECT:
      let reason = failure.system == 0 ? "no connection" : systemWords(failure.system)
      if let proxy = request.proxy, !proxy.isEmpty {
        return "the proxy \(Self.host(of: proxy) ?? "") cannot be reached: \(reason): check proxy, and whether it runs"
      }
      return "\(host) cannot be reached: \(reason): check host and port, and the proxy if there is one"
    case CURLE_OPERATION_TIMEDOUT:
      return "\(host) did not answer within \(Value.text(Double(request.timeout / .millisecond) / 1000)) s: check the network"
    case CURLE_FILESIZE_EXCEEDED: return tooLong(host, request)
    case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_ISSUER_ERROR:
      let remedy = "check the machine's clock, whether something stands in between, and that ca-certificates is installed"
      return "the certificate of \(host) is not trusted\(reason(in: failure.tlsWords)): \(remedy)"
    case CURLE_SSL_CACERT_BADFILE: return "there are no certificates to trust: apt install ca-certificates"
    case CURLE_SSL_CONNECT_ERROR: return "\(host) does not speak TLS\(reason(in: failure.tlsWords)): check the port, and http or https"
    case CURLE_UNSUPPORTED_PROTOCOL, CURLE_WEIRD_SERVER_REPLY: return "what \(host) answers is no HTTP: check the port, and http or https"
    case CURLE_GOT_NOTHING: return "\(host) hung up without an answer: try again later, or check the port"
    case CURLE_PARTIAL_FILE, CURLE_RECV_ERROR, CURLE_SEND_ERROR:
      return "the connection to \(host) broke before the answer was whole: try again later"
    case CURLE_URL_MALFORMAT: return "libcurl does not understand the request's URL: check it"
    case CURLE_OUT_OF_MEMORY: return "there is no memory for a request"
    default: return "the request to \(host) failed: \(printable(String(cString: ccurl_words(failure.code)).lowercased(), limit: 80))"
    }
  }

  private static func tooLong(_ host: String, _ request: HTTPRequest) -> String {
    "\(host) answers with more than the \(request.maxLength >> 20) MiB that is read: check the URL if that is a surprise"
  }

  /// What libcurl has against a certificate. Such words hold names of hosts and no more of a URL.
  private static func reason(in text: String) -> String {
    guard !text.isEmpty, !text.utf8.contains(UInt8(ascii: "/")), !text.utf8.contains(UInt8(ascii: "?")) else { return "" }
    // Its first words say no more than ours.
    let words = text.firstIndex(of: ":").map { text[text.index(after: $0)...].drop { $0 == " " } } ?? text[...]
    return " (\(printable(words, limit: 120)))"
  }
}
