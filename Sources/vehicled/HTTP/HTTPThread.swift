// The HTTP thread: libcurl's multi interface, which sleeps in poll(2) until the network or a job wakes it. All libcurl calls except
// the wake-up are made here. Each request has its own connection, because libcurl repeats a request when a reused connection turns
// out to be closed, and a request with side effects must not be sent twice. Source: curl_multi_poll(3), curl_easy_setopt(3).

import CCurl
import CLinux
import DBus
import Glibc
import Protocols
import ServiceRuntime
import Synchronization

final class HTTPThread: Sendable {
  enum Job: Sendable {
    case start(HTTPClient.TransferID, HTTPRequest)
    case cancel(HTTPClient.TransferID)
    /// Checks that the thread responds: the thread calls the closure, at the latest when it ends.
    case ping(@Sendable () -> Void)
    case end
  }

  /// The state that is shared with other threads.
  private struct Inbox {
    var jobs: [Job] = []
    /// The address of libcurl's multi handle; 0 while there is none to wake.
    var multi: UInt = 0
    var isClosed = false
    var unfinished: [HTTPClient.TransferID] = []
  }

  private let inbox = Mutex(Inbox())
  private let caFile: String?
  private let ended: @Sendable (HTTPClient.TransferID, HTTPResponse) -> Void

  /// Starts the thread. It calls `ended` for each request that it has finished or removed, and `failed` when it has to end.
  init(
    caFile: String?, ended: @escaping @Sendable (HTTPClient.TransferID, HTTPResponse) -> Void,
    failed: @escaping @Sendable (HTTPThread, String) -> Void
  ) {
    self.caFile = caFile
    self.ended = ended
    let code = startThread { if let reason = self.run() { failed(self, reason) } }
    if code != 0 {
      close(with: [:])
      failed(self, "cannot start the HTTP thread: \(errnoMessage(code))")
    }
  }

  /// The requests that were not finished when the thread failed.
  var unfinished: [HTTPClient.TransferID] { inbox.withLock { $0.unfinished } }

  /// Posts a job, from any thread. A request that is posted after the thread has ended stays unfinished.
  func post(_ job: Job) {
    let isClosed = inbox.withLock { inbox in
      guard !inbox.isClosed else {
        if case .start(let id, _) = job { inbox.unfinished.append(id) }
        return true
      }
      inbox.jobs.append(job)
      if let multi = CurlMulti(bitPattern: inbox.multi) { ccurl_wake(multi) }
      return false
    }
    if isClosed, case .ping(let finish) = job { finish() }
  }

  /// Runs the thread. Returns nil after the job `end`, or the reason for a failure.
  private func run() -> String? {
    clinux_name_thread("http")
    if let reason = ccurl_load() {
      close(with: [:])
      return String(cString: reason)
    }
    guard let multi = ccurl_multi() else {
      close(with: [:])
      return "out of memory"
    }
    let number = UInt(bitPattern: multi)
    inbox.withLock { $0.multi = number }
    var transfers: [HTTPClient.TransferID: HTTPTransfer] = [:]
    let reason = work(multi, &transfers)
    for transfer in transfers.values { ccurl_remove(multi, transfer.easy) }
    close(with: transfers)
    transfers = [:]
    ccurl_multi_end(multi)
    return reason
  }

  /// Runs jobs and transfers. Returns nil after the job `end`, or the reason for a failure.
  private func work(_ multi: CurlMulti, _ transfers: inout [HTTPClient.TransferID: HTTPTransfer]) -> String? {
    while true {
      for job in takeJobs() {
        switch job {
        case .start(let id, let request): start(id, request, multi, &transfers)
        case .cancel(let id):
          guard let transfer = transfers.removeValue(forKey: id) else { break }
          ccurl_remove(multi, transfer.easy)
          ended(id, .failed("cancelled"))
        case .ping(let finish): finish()
        case .end: return nil
        }
      }
      var running: CInt = 0
      var code = ccurl_perform(multi, &running)
      var result = CURLE_OK
      while let easy = ccurl_ended(multi, &result) {
        guard let (id, transfer) = transfers.first(where: { $0.value.easy == easy }) else { break }
        ccurl_remove(multi, easy)
        transfers[id] = nil
        ended(id, transfer.response(result))
      }
      // Without running transfers, the thread sleeps until a job is posted.
      if code == CURLM_OK { code = ccurl_poll(multi, running > 0 ? 60_000 : .max) }
      if code != CURLM_OK { return "libcurl failed: error \(code.rawValue)" }
    }
  }

  private func start(
    _ id: HTTPClient.TransferID, _ request: HTTPRequest, _ multi: CurlMulti, _ transfers: inout [HTTPClient.TransferID: HTTPTransfer]
  ) {
    guard let transfer = HTTPTransfer(request, caFile: caFile) else {
      return ended(id, .failed("libcurl rejected the request; check its URL and proxy"))
    }
    guard ccurl_add(multi, transfer.easy) == CURLM_OK else { return ended(id, .failed("out of memory")) }
    transfers[id] = transfer
  }

  private func takeJobs() -> [Job] {
    inbox.withLock { inbox in
      defer { inbox.jobs = [] }
      return inbox.jobs
    }
  }

  /// Accepts no further jobs: pending requests become unfinished, and the closures of `ping` jobs are called.
  private func close(with transfers: [HTTPClient.TransferID: HTTPTransfer]) {
    let ids = Array(transfers.keys)
    let jobs = inbox.withLock { inbox in
      (inbox.isClosed, inbox.multi) = (true, 0)
      inbox.unfinished += ids
      for case .start(let id, _) in inbox.jobs { inbox.unfinished.append(id) }
      defer { inbox.jobs = [] }
      return inbox.jobs
    }
    for case .ping(let finish) in jobs { finish() }
  }
}

/// libcurl's CURLM, a multi handle.
typealias CurlMulti = UnsafeMutableRawPointer
/// libcurl's CURL, the handle of one transfer.
typealias CurlEasy = UnsafeMutableRawPointer
