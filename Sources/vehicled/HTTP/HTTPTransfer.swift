// One transfer of libcurl: its options, the received bytes, and the response. Used only on the HTTP thread. A transfer must never
// follow a redirect, accept a certificate that cannot be verified, or store more bytes than its limits allow.

import CCurl
import Glibc
import Protocols

final class HTTPTransfer {
  /// The maximum size of a request body, in bytes.
  static let maxBodySize = 1 << 20
  static let maxHeadSize = 64 << 10
  private static let maxConnectDuration: Nanoseconds = 10 * .second

  /// The timeout for the connection of a request, including the name look-up and TLS.
  static func connectTimeout(of request: HTTPRequest) -> Nanoseconds { min(request.timeout, maxConnectDuration) }

  let easy: CurlEasy
  private let request: HTTPRequest
  private var lists: [UnsafeMutablePointer<curl_slist>?] = []
  private let errors: UnsafeMutablePointer<CChar>
  private var body: [UInt8] = []
  private var headSize = 0
  private var excess: HTTPErrorMessage.Excess?

  /// Creates a transfer for a request that `HTTPErrorMessage.problem(with:)` has accepted. Returns nil if libcurl rejects it.
  init?(_ request: HTTPRequest, caFile: String?) {
    guard let easy = ccurl_easy() else { return nil }
    self.easy = easy
    self.request = request
    errors = .allocate(capacity: Int(CURL_ERROR_SIZE))
    errors.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
    guard setUp(caFile) else { return nil }
  }

  deinit {
    ccurl_easy_end(easy)
    for list in lists { ccurl_free(list) }
    errors.deallocate()
  }

  private func setUp(_ caFile: String?) -> Bool {
    var codes: [CURLcode] = []
    func set(_ option: CURLoption, _ number: Int) { codes.append(ccurl_set_number(easy, option, number)) }
    func set(_ option: CURLoption, _ text: String) { codes.append(ccurl_set_text(easy, option, text)) }
    func set(_ option: CURLoption, _ pointer: UnsafeMutableRawPointer?) { codes.append(ccurl_set_pointer(easy, option, pointer)) }
    set(CURLOPT_PROTOCOLS_STR, "http,https")
    set(CURLOPT_URL, request.url)
    set(CURLOPT_USERAGENT, "vehicled/\(Protocols.version)")
    set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
    set(CURLOPT_FOLLOWLOCATION, 0)
    set(CURLOPT_NOSIGNAL, 1)
    set(CURLOPT_FRESH_CONNECT, 1)
    set(CURLOPT_FORBID_REUSE, 1)
    set(CURLOPT_TIMEOUT_MS, Self.milliseconds(request.timeout))
    set(CURLOPT_CONNECTTIMEOUT_MS, Self.milliseconds(Self.connectTimeout(of: request)))
    set(CURLOPT_MAXFILESIZE, request.maxLength)
    set(CURLOPT_SSL_VERIFYPEER, 1)
    set(CURLOPT_SSL_VERIFYHOST, 2)
    if let caFile { set(CURLOPT_CAINFO, caFile) }
    if let proxy = request.proxy {
      set(CURLOPT_PROXY, proxy)
      set(CURLOPT_NOPROXY, "")
    }
    setMethod { option, text in
      set(option, text)
    } number: { option, number in
      set(option, number)
    }
    set(CURLOPT_HTTPHEADER, headerList())
    set(CURLOPT_ERRORBUFFER, errors)
    let context = Unmanaged.passUnretained(self).toOpaque()
    set(CURLOPT_WRITEDATA, context)
    set(CURLOPT_HEADERDATA, context)
    codes.append(ccurl_set_callback(easy, CURLOPT_WRITEFUNCTION) { transfer($3)?.receiveBody($0, $1 * $2) ?? 0 })
    codes.append(ccurl_set_callback(easy, CURLOPT_HEADERFUNCTION) { transfer($3)?.receiveHead($1 * $2) ?? 0 })
    if !request.body.isEmpty || ["POST", "PUT", "PATCH"].contains(request.method) {
      codes.append(request.body.withUnsafeBytes { ccurl_set_body(easy, $0.baseAddress, $0.count) })
    }
    // A running name lookup cannot be interrupted; with this option libcurl abandons its thread instead of waiting. The result is ignored,
    // because libcurl before 7.87 rejects the option.
    ccurl_set_number(easy, CURLOPT_QUICK_EXIT, 1)
    return codes.allSatisfy { $0 == CURLE_OK }
  }

  private func setMethod(text: (CURLoption, String) -> Void, number: (CURLoption, Int) -> Void) {
    switch request.method {
    case "GET" where request.body.isEmpty: number(CURLOPT_HTTPGET, 1)
    case "HEAD": number(CURLOPT_NOBODY, 1)
    default: text(CURLOPT_CUSTOMREQUEST, request.method)
    }
  }

  /// The request's headers, including those that replace libcurl's own defaults.
  private func headerList() -> UnsafeMutablePointer<curl_slist>? {
    var list: UnsafeMutablePointer<curl_slist>?
    let given = Set(request.headers.keys.map { $0.lowercased() })
    for line in ["Accept-Encoding: identity", "Connection: close", "Content-Type:", "Expect:"]
    where !given.contains(String(line.prefix { $0 != ":" }).lowercased()) {
      list = ccurl_append(list, line)
    }
    for (name, value) in request.headers { list = ccurl_append(list, value.isEmpty ? "\(name);" : "\(name): \(value)") }
    lists.append(list)
    return list
  }

  private static func milliseconds(_ time: Nanoseconds) -> Int { Int(min(max(time / .millisecond, 1), 600_000)) }

  // MARK: Received bytes

  fileprivate func receiveBody(_ bytes: UnsafePointer<CChar>?, _ count: Int) -> Int {
    guard let bytes, body.count + count <= request.maxLength else {
      excess = .body
      return 0
    }
    body.append(contentsOf: UnsafeRawBufferPointer(start: bytes, count: count))
    return count
  }

  fileprivate func receiveHead(_ count: Int) -> Int {
    headSize += count
    guard headSize <= Self.maxHeadSize else {
      excess = .head
      return 0
    }
    return count
  }

  /// The response, once libcurl has finished the transfer.
  func response(_ result: CURLcode) -> HTTPResponse {
    let status = ccurl_number(easy, CURLINFO_RESPONSE_CODE)
    if result == CURLE_OK, status > 0 {
      let type = ccurl_text(easy, CURLINFO_CONTENT_TYPE).flatMap { HTTPErrorMessage.mediaType(String(cString: $0)) }
      return .answered(status: status, type: type, body: body)
    }
    let failure = HTTPErrorMessage.Failure(
      code: result, excess: excess, isConnected: ccurl_is_connected(easy) != 0,
      connectErrno: CInt(truncatingIfNeeded: ccurl_number(easy, CURLINFO_OS_ERRNO)),
      proxyStatus: ccurl_number(easy, CURLINFO_HTTP_CONNECTCODE), tlsMessage: String(cString: errors))
    return .failed(HTTPErrorMessage.message(for: failure, of: request))
  }
}

private func transfer(_ context: UnsafeMutableRawPointer?) -> HTTPTransfer? {
  context.map { Unmanaged<HTTPTransfer>.fromOpaque($0).takeUnretainedValue() }
}
