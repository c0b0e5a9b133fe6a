import Glibc
import NIOCore
import Protocols
import Testing

@testable import vehicled

@Suite struct ListenerTests {
  /// A socket that is bound to this path and listens (`backlog` ≥ 0), or is connected to it (nil). -1 where that fails.
  @Loop private func socket(at path: String, backlog: CInt?) -> CInt {
    let descriptor = Glibc.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
    let done = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        let size = socklen_t(MemoryLayout<sockaddr_un>.size)
        guard let backlog else { return connect(descriptor, $0, size) }
        return bind(descriptor, $0, size) == 0 ? listen(descriptor, backlog) : -1
      }
    }
    if done == 0 { return descriptor }
    close(descriptor)
    return -1
  }

  @Loop private func listener(at path: String) async throws -> Listener {
    let methods = Methods(board: Board(), access: Access(observe: [], control: []), blueZ: BlueZ(SystemBus()))
    return try await Listener.start(path: path) { channel in
      try channel.pipeline.syncOperations.addHandler(Session(methods, peer: nil))
    }
  }

  @Test("A holder that is stopped, its queue full, is a holder: the start is refused and does not hang")
  func stoppedHolder() async {
    await Task { @Loop in
      let path = "\(temporaryDirectory())/socket"
      let holder = socket(at: path, backlog: 0)
      var waiting: [CInt] = []
      while case let next = socket(at: path, backlog: nil), next >= 0 { waiting.append(next) }
      #expect(!waiting.isEmpty)
      let error = await #expect(throws: ValueError.self) { _ = try await listener(at: path) }
      #expect(error?.description.contains("another vehicled") == true)
      (waiting + [holder]).forEach { close($0) }
    }.value
  }

  @Test("At its end a daemon removes its own socket and no other's")
  func removesItsOwn() async throws {
    try await Task { @Loop in
      let path = "\(temporaryDirectory())/socket"
      try await listener(at: path).close()
      #expect(access(path, F_OK) != 0)
      let ours = try await listener(at: path)
      unlink(path)
      let theirs = socket(at: path, backlog: 1)
      await ours.close()
      #expect(access(path, F_OK) == 0)
      close(theirs)
    }.value
  }

  @Test("Of many clients 256 are served, the rest let go, and one that leaves makes room")
  func manyClients() async throws {
    try await Task { @Loop in
      let path = "\(temporaryDirectory())/socket"
      let listener = try await listener(at: path)
      var clients: [CInt] = []
      /// Whether the daemon has closed its end.
      func isLetGo(_ client: CInt) -> Bool {
        var byte: UInt8 = 0
        return read(client, &byte, 1) == 0
      }
      for count in 1...260 {
        // The queue of those who wait to be accepted is shorter than this.
        #expect(
          await until {
            let client = socket(at: path, backlog: nil)
            if client >= 0 { clients.append(client) }
            return clients.count == count
          })
      }
      #expect(await until { clients[256...].allSatisfy(isLetGo) })
      #expect(!clients[..<256].contains(where: isLetGo))
      close(clients.removeFirst())
      // Its leaving is noticed in a later turn: a client that comes before is let go, and the next one tries.
      #expect(
        await until {
          if !isLetGo(clients[clients.count - 1]) { return true }
          clients.append(socket(at: path, backlog: nil))
          return false
        })
      let call = Array("{\"method\":\"org.varlink.service.GetInfo\"}\0".utf8)
      let last = clients[clients.count - 1]
      #expect(write(last, call, call.count) == call.count)
      var reply = [UInt8](repeating: 0, count: 16)
      #expect(await until { read(last, &reply, 1) == 1 })
      clients.forEach { close($0) }
      await listener.close()
    }.value
  }
}
