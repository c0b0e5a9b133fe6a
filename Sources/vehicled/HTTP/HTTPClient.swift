// The part of the HTTP client that runs on the loop: a bounded number of running and queued requests, and their callbacks. HTTPThread
// makes the transfers; it is started with the first request. Nothing here may block or log a request.

import Protocols

@Loop final class HTTPClient {
  /// The ID of a request, which is unique in this client.
  typealias TransferID = UInt64

  /// The maximum number of running requests.
  nonisolated static let maxRunning = 16
  /// The maximum number of queued requests.
  nonisolated static let maxQueued = 64

  private var callbacks: [TransferID: @Loop (HTTPResponse) -> Void] = [:]
  private var running: Set<TransferID> = []
  private var queue: [(id: TransferID, request: HTTPRequest)] = []
  private var lastID: TransferID = 0
  private var thread: HTTPThread?
  private let caFile: String?

  /// `caFile` contains the CA certificates to trust. If it is nil, those of the system are trusted.
  init(caFile: String? = nil) { self.caFile = caFile }

  /// Sends a request. `finish` is called exactly once, in a later turn, unless the request is cancelled.
  func send(_ request: HTTPRequest, then finish: @escaping @Loop (HTTPResponse) -> Void) -> TransferID {
    lastID += 1
    let id = lastID
    callbacks[id] = finish
    if let problem = HTTPErrorMessage.problem(with: request) {
      Loop.post { self.complete(id, .failed(problem)) }
    } else if running.count < Self.maxRunning {
      start(id, request)
    } else if queue.count < Self.maxQueued {
      queue.append((id, request))
    } else {
      let message = "too many HTTP requests: \(Self.maxRunning + Self.maxQueued) are pending; send fewer"
      Loop.post { self.complete(id, .failed(message)) }
    }
    return id
  }

  /// Cancels a request; `finish` is not called.
  func cancel(_ id: TransferID) {
    guard callbacks.removeValue(forKey: id) != nil else { return }
    queue.removeAll { $0.id == id }
    // The request counts as running until the thread has removed it.
    if running.contains(id) { thread?.post(.cancel(id)) }
  }

  /// Calls `finish` once the HTTP thread responds, or at once if there is no thread. For the watchdog.
  func ping(then finish: @escaping @Loop @Sendable () -> Void) {
    guard let thread else { return finish() }
    thread.post(.ping { Loop.post(finish) })
  }

  /// Cancels all requests without waiting for the thread.
  func close() {
    callbacks = [:]
    queue = []
    thread?.post(.end)
    thread = nil
  }

  private func start(_ id: TransferID, _ request: HTTPRequest) {
    running.insert(id)
    let thread = thread ?? makeThread()
    self.thread = thread
    thread.post(.start(id, request))
  }

  private func makeThread() -> HTTPThread {
    HTTPThread(caFile: caFile) { id, response in
      Loop.post { [weak self] in self?.transferEnded(id, response) }
    } failed: { thread, reason in
      Loop.post { [weak self] in self?.threadFailed(thread, reason) }
    }
  }

  /// Called when the thread has removed a request.
  private func transferEnded(_ id: TransferID, _ response: HTTPResponse) {
    running.remove(id)
    complete(id, response)
    while running.count < Self.maxRunning, !queue.isEmpty {
      let next = queue.removeFirst()
      start(next.id, next.request)
    }
  }

  /// Called when the thread has failed. The next request starts another thread: a missing library may have been installed by then.
  private func threadFailed(_ thread: HTTPThread, _ reason: String) {
    if self.thread === thread { self.thread = nil }
    for id in thread.unfinished { transferEnded(id, .failed(reason)) }
  }

  /// Calls `finish` of a request, unless it was cancelled.
  private func complete(_ id: TransferID, _ response: HTTPResponse) {
    callbacks.removeValue(forKey: id)?(response)
  }
}
