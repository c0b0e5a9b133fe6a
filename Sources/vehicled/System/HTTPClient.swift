// The loop's side of asking HTTP servers: which requests run, which wait for their turn, and who is told. It holds a bounded
// number of both, and whoever goes away takes what he asked with him. Asking is HTTPThread's; it is started with the first
// request, so that a daemon that asks nobody pays nothing. It must never block, and never tell anybody what was asked.

import Protocols

@Loop final class HTTPClient {
  /// A request that is on its way.
  typealias Ticket = UInt64

  /// Requests that run at once, and those that may wait for them.
  nonisolated static let maxRunning = 16
  nonisolated static let maxWaiting = 64

  private var asked: [Ticket: @Loop (HTTPResponse) -> Void] = [:]
  private var running: Set<Ticket> = []
  private var waiting: [(ticket: Ticket, request: HTTPRequest)] = []
  private var last: Ticket = 0
  private var thread: HTTPThread?
  private let authorities: String?

  /// A client that trusts the certificates in this file; nil: those of the system.
  init(authorities: String? = nil) { self.authorities = authorities }

  /// Asks. `finish` is told exactly once, in a later turn, unless the request is cancelled.
  func send(_ request: HTTPRequest, then finish: @escaping @Loop (HTTPResponse) -> Void) -> Ticket {
    last += 1
    let ticket = last
    asked[ticket] = finish
    if let trouble = HTTPWords.trouble(with: request) {
      Loop.post { self.settle(ticket, .failed(trouble)) }
    } else if running.count < Self.maxRunning {
      start(ticket, request)
    } else if waiting.count < Self.maxWaiting {
      waiting.append((ticket, request))
    } else {
      let words = "\(Self.maxRunning + Self.maxWaiting) requests are under way already: ask less often"
      Loop.post { self.settle(ticket, .failed(words)) }
    }
    return ticket
  }

  /// Nobody wants the answer any more; `finish` is not told.
  func cancel(_ ticket: Ticket) {
    guard asked.removeValue(forKey: ticket) != nil else { return }
    waiting.removeAll { $0.ticket == ticket }
    // Its place is free when the thread has let go of it.
    if running.contains(ticket) { thread?.post(.cancel(ticket)) }
  }

  /// Tells, in this turn or a later one, that the thread lives, or that none is needed. For the watchdog.
  func answer(then finish: @escaping @Loop @Sendable () -> Void) {
    guard let thread else { return finish() }
    thread.post(.answer { Loop.post(finish) })
  }

  /// Ends whatever is under way; nobody is told, and nothing waits for it.
  func close() {
    asked = [:]
    waiting = []
    thread?.post(.end)
    thread = nil
  }

  private func start(_ ticket: Ticket, _ request: HTTPRequest) {
    running.insert(ticket)
    let thread = thread ?? makeThread()
    self.thread = thread
    thread.post(.start(ticket, request))
  }

  private func makeThread() -> HTTPThread {
    HTTPThread(authorities: authorities) { ticket, response in
      Loop.post { [weak self] in self?.ended(ticket, response) }
    } lost: { thread, trouble in
      Loop.post { [weak self] in self?.lost(thread, trouble) }
    }
  }

  /// The thread has let go of a request.
  private func ended(_ ticket: Ticket, _ response: HTTPResponse) {
    running.remove(ticket)
    settle(ticket, response)
    while running.count < Self.maxRunning, !waiting.isEmpty {
      let next = waiting.removeFirst()
      start(next.ticket, next.request)
    }
  }

  /// The thread has ended by itself, and what it had to do with it. The next request makes another: what is missing may be
  /// installed by then.
  private func lost(_ thread: HTTPThread, _ trouble: String) {
    if self.thread === thread { self.thread = nil }
    for ticket in thread.left { ended(ticket, .failed(trouble)) }
  }

  private func settle(_ ticket: Ticket, _ response: HTTPResponse) {
    asked.removeValue(forKey: ticket)?(response)
  }
}
