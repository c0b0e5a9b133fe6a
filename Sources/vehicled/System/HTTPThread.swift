// The thread that asks HTTP servers: libcurl's multi interface, which sleeps in poll(2) until the network or a job wakes it.
// Every call of libcurl is made here, but for the wake-up. Each request has a connection of its own: libcurl would ask again
// by itself over one that died while it was idle, and what changes something on the other side must not be asked twice.
// It must never follow a redirection, trust a certificate that cannot be verified, or keep more than HTTPTransfer's limits.
// Facts: libcurl's manual pages (curl_multi_poll(3), curl_easy_setopt(3)).

import Bus
import CCurl
import CLinux
import Glibc
import Protocols
import Synchronization

final class HTTPThread: Sendable {
  enum Job: Sendable {
    case start(HTTPClient.Ticket, HTTPRequest)
    case cancel(HTTPClient.Ticket)
    /// Told that the thread lives, or is no more.
    case answer(@Sendable () -> Void)
    case end
  }

  /// What waits for the thread.
  private struct Inbox {
    var jobs: [Job] = []
    /// libcurl's multi handle as a number, while it can be woken.
    var bell: UInt = 0
    var isOver = false
    var left: [HTTPClient.Ticket] = []
  }

  private let inbox = Mutex(Inbox())
  private let authorities: String?
  private let ended: @Sendable (HTTPClient.Ticket, HTTPResponse) -> Void

  /// Starts it. `ended` is told of every request once the thread has let go of it, `lost` when it had to give up.
  init(
    authorities: String?, ended: @escaping @Sendable (HTTPClient.Ticket, HTTPResponse) -> Void,
    lost: @escaping @Sendable (HTTPThread, String) -> Void
  ) {
    self.authorities = authorities
    self.ended = ended
    let code = startThread { if let trouble = self.run() { lost(self, trouble) } }
    if code != 0 {
      close(with: [:])
      lost(self, "there is no thread for requests: \(systemWords(code))")
    }
  }

  /// What it had to do when it was lost.
  var left: [HTTPClient.Ticket] { inbox.withLock { $0.left } }

  /// Has the thread do something, from any thread. What comes when it is over is left.
  func post(_ job: Job) {
    let isOver = inbox.withLock { inbox in
      guard !inbox.isOver else {
        if case .start(let ticket, _) = job { inbox.left.append(ticket) }
        return true
      }
      inbox.jobs.append(job)
      if let multi = CurlMulti(bitPattern: inbox.bell) { ccurl_wake(multi) }
      return false
    }
    if isOver, case .answer(let finish) = job { finish() }
  }

  /// Works until it is told to end, or cannot; gives the reason.
  private func run() -> String? {
    clinux_name_thread("http")
    if let trouble = ccurl_load() {
      close(with: [:])
      return String(cString: trouble)
    }
    guard let multi = ccurl_multi() else {
      close(with: [:])
      return "there is no memory for a request"
    }
    let bell = UInt(bitPattern: multi)
    inbox.withLock { $0.bell = bell }
    var transfers: [HTTPClient.Ticket: HTTPTransfer] = [:]
    let trouble = work(multi, &transfers)
    for transfer in transfers.values { ccurl_remove(multi, transfer.easy) }
    close(with: transfers)
    transfers = [:]
    ccurl_multi_end(multi)
    return trouble
  }

  private func work(_ multi: CurlMulti, _ transfers: inout [HTTPClient.Ticket: HTTPTransfer]) -> String? {
    while true {
      for job in takeJobs() {
        switch job {
        case .start(let ticket, let request): start(ticket, request, multi, &transfers)
        case .cancel(let ticket):
          guard let transfer = transfers.removeValue(forKey: ticket) else { break }
          ccurl_remove(multi, transfer.easy)
          ended(ticket, .failed("nobody wants the answer any more"))
        case .answer(let finish): finish()
        case .end: return nil
        }
      }
      var running: CInt = 0
      var code = ccurl_perform(multi, &running)
      var result = CURLE_OK
      while let easy = ccurl_ended(multi, &result) {
        guard let (ticket, transfer) = transfers.first(where: { $0.value.easy == easy }) else { break }
        ccurl_remove(multi, easy)
        transfers[ticket] = nil
        ended(ticket, transfer.response(result))
      }
      // Sleeps until a job comes, where nothing runs.
      if code == CURLM_OK { code = ccurl_poll(multi, running > 0 ? 60_000 : .max) }
      if code != CURLM_OK { return "libcurl has failed (\(code.rawValue))" }
    }
  }

  private func start(
    _ ticket: HTTPClient.Ticket, _ request: HTTPRequest, _ multi: CurlMulti, _ transfers: inout [HTTPClient.Ticket: HTTPTransfer]
  ) {
    guard let transfer = HTTPTransfer(request, authorities: authorities) else {
      return ended(ticket, .failed("libcurl does not take the request: check its URL and proxy"))
    }
    guard ccurl_add(multi, transfer.easy) == CURLM_OK else { return ended(ticket, .failed("there is no memory for a request")) }
    transfers[ticket] = transfer
  }

  private func takeJobs() -> [Job] {
    inbox.withLock { inbox in
      defer { inbox.jobs = [] }
      return inbox.jobs
    }
  }

  /// Nothing is taken any more; what was is left, or told.
  private func close(with transfers: [HTTPClient.Ticket: HTTPTransfer]) {
    let tickets = Array(transfers.keys)
    let jobs = inbox.withLock { inbox in
      (inbox.isOver, inbox.bell) = (true, 0)
      inbox.left += tickets
      for case .start(let ticket, _) in inbox.jobs { inbox.left.append(ticket) }
      defer { inbox.jobs = [] }
      return inbox.jobs
    }
    for case .answer(let finish) in jobs { finish() }
  }
}

/// What libcurl calls CURLM and CURL.
typealias CurlMulti = UnsafeMutableRawPointer
typealias CurlEasy = UnsafeMutableRawPointer
