// The page of vehicled-web in Chromium, with the real programs and simulated vehicles. The checks are in Tests/Web, because browsers are
// driven from Python.

import Foundation
import Testing

extension EndToEndServices {
  @Suite("Web page") struct WebPageTests {
    @Test(arguments: ["test_page.py", "test_cockpit.py"])
    func `the page passes its tests in a browser`(_ file: String) throws {
      let rig = try Rig()
      let test = Documents.root.appendingPathComponent("Tests/Web/\(file)").path
      let program = try Program(Rig.python, [test], environment: ["VEHICLED_PROGRAMS": Rig.programs], in: rig.directory)
      #expect(program.status(within: 600) == 0, "\(program.stderr.suffix(3000))")
    }
  }
}
