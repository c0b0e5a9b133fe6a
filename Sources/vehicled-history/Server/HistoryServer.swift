// The Varlink server of the history. Its methods are in extensions. Reads run on a thread of their own, so that they do not delay
// recording.

import HistoryStore
import Protocols
import SQLite
import ServiceRuntime
import Varlink

final class HistoryServer {
  /// The maximum size of a call in bytes: blocks to import are large.
  private static let callLimit = 1 << 20

  let store: StoreThread
  let reads: ReaderThread
  let checks: ReaderThread
  let periodManager: PeriodManager
  let alerts: AlertManager
  let maintenance: Maintenance
  let loop: EventLoop
  /// The state of the recorder: the reason why it is not recording, if any, and the number of dropped blocks.
  var state: () -> (failure: String?, dropped: Int) = { (nil, 0) }
  /// Stores the values recorded so far.
  var flush: () -> Void = {}
  /// Records the current values of a device, or one of them, again.
  var recordAgain: (_ device: String, _ property: String?) -> Void = { _, _ in }
  let limit: Int
  private var server: VarlinkServer?

  init(
    store: StoreThread, reads: ReaderThread, checks: ReaderThread, periodManager: PeriodManager, alerts: AlertManager,
    maintenance: Maintenance, loop: EventLoop, limit: Int
  ) {
    (self.store, self.reads, self.checks, self.periodManager) = (store, reads, checks, periodManager)
    (self.alerts, self.maintenance, self.loop, self.limit) = (alerts, maintenance, loop, limit)
  }

  /// Serves the socket at this path, or the one passed by systemd.
  func start(path: String, access: ServiceAccess) throws(ValueError) {
    var limits = VarlinkServer.Limits()
    limits.call = Self.callLimit
    let server = VarlinkServer(
      product: "vehicled-history", interfaces: [.history], methods: readMethods + periodMethods + maintenanceMethods + alertMethods,
      limits: limits, loop: loop, isKnown: { access.isKnown($0) }
    ) { access.check($0, for: $1, decide: $2) }
    try server.start(path: path, mode: 0o666)
    self.server = server
  }

  func close() { server?.close() }

  /// Replies with the result of `work`, which runs on the reading thread.
  func read<M>(_ call: MethodCall<M>, argument: String = "", _ work: @escaping @Sendable (HistoryReader) throws -> M.Result) {
    reads.run(work) { Self.reply($0, to: call, argument: argument) }
  }

  static func reply<M>(_ result: Result<M.Result, any Error>, to call: MethodCall<M>, argument: String = "") {
    switch result {
    case .success(let result): call.reply(result)
    case .failure(let error): fail(call, error, argument: argument)
    }
  }

  static func fail<M>(_ call: MethodCall<M>, _ error: any Error, argument: String = "") {
    switch error {
    case let error as HistoryContractError: call.fail(error)
    case let error as StoreError: call.fail(error.contractError(argument: argument))
    default: call.fail(HistoryContractError.storeError(code: "failed", message: "\(error)"))
    }
  }
}
