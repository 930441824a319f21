//! The description of a host with some links to debug targets, and a debug capability or none.

/// The parts of a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Node {
    /// Links to debug targets: at most two.
    pub links: usize,
    /// The host is a debug target itself.
    pub target: bool,
    /// The host looks at all of its ports, as algorithm 4 is written: its links are at any port.
    pub looks_everywhere: bool,
}

impl Node {
    /// Returns the name by which a list of hosts names this description.
    pub fn file(self) -> String {
        let (target, ports) = (u8::from(self.target), u8::from(self.looks_everywhere));
        format!("node-{}-{target}-{ports}", self.links)
    }

    /// Returns the node with this name.
    pub fn of(file: &str) -> Option<Node> {
        let mut numbers = file.strip_prefix("node-")?.split('-');
        let mut number = || numbers.next()?.parse::<usize>().ok();
        let (links, target, ports) = (number()?, number()?, number()?);
        Some(Node { links, target: target != 0, looks_everywhere: ports != 0 })
    }

    /// Returns the text of its description, with all that its servers need.
    pub fn text(self) -> String {
        let Node { links, target, .. } = self;
        let ends = links + usize::from(target);
        let mut text = "[system]\nname = \"node\"\nmemory = \"32M\"\n".to_owned();
        text += &self.server();
        if target {
            let uses = format!("{}, \"xhci\", \"dbc-rings\", \"debug.enable\"", names(links..ends));
            text += &format!(
                "[[process]]\nname = \"dbcd\"\npriority = 40\nvcpu = \"dbc\"\nheap = \"4K\"\n\
                 semaphores = 1\nuses = [{uses}]\narguments = [1000, 1, {links}]\n\
                 [[vcpu]]\nname = \"dbc\"\nbudget = \"60us\"\nperiod = \"1ms\"\n\
                 [[semaphore]]\nname = \"debug.enable\"\nkind = \"counting\"\n\
                 [[segment]]\nname = \"dbc-rings\"\nsize = \"8K\"\ndma = true\n"
            );
        }
        text += &format!(
            "[[process]]\nname = \"link-greet\"\npriority = 30\nvcpu = \"greet\"\n\
             arguments = [{ends}, 20000]\nuses = [{}]\n\
             [[vcpu]]\nname = \"greet\"\nbudget = \"60us\"\nperiod = \"500us\"\n\
             replenishments = 4\n\
             [[segment]]\nname = \"link.data\"\nsize = \"832K\"\ndma = true\n\
             [[semaphore]]\nname = \"link.ready\"\nkind = \"counting\"\n",
            names(0..ends)
        );
        for end in 0..ends {
            text += &format!(
                "[[segment]]\nname = \"link{end}.asks\"\nsize = \"4K\"\n\
                 [[segment]]\nname = \"link{end}.done\"\nsize = \"4K\"\n\
                 [[semaphore]]\nname = \"link{end}.ask\"\nkind = \"counting\"\n"
            );
        }
        text
    }

    /// Returns the USB server and its surroundings.
    fn server(self) -> String {
        let Node { links, target, looks_everywhere } = self;
        let mut uses = "\"xhci\", \"usb-rings\", \"usb-buffers\"".to_owned();
        if target {
            uses += ", \"debug.enable\"";
        }
        let settings = if links == 0 {
            "serves = [\"hubs\"]".to_owned()
        } else {
            uses += &format!(", {}", names(0..links));
            let port = |link: usize| if looks_everywhere { 0 } else { 16 + link };
            let ports: Vec<String> = (0..links).map(|link| port(link).to_string()).collect();
            format!("links = [{}]", ports.join(", "))
        };
        let (mut vcpus, mut intervals) = (String::new(), "\"1990us\"".to_owned());
        for link in 0..links {
            uses += &format!(", \"usb-link{link}\"");
            intervals += ", \"49us\"";
            vcpus += &format!(
                "[[vcpu]]\nname = \"usb-link{link}\"\nkind = \"io\"\nutilization = \"10%\"\n\
                 interval = \"35us\"\nserves = [\"greet\"]\n"
            );
        }
        let (threads, semaphores, messages) = (1 + 2 * links, 2 + links, 1 + links);
        format!(
            "[[process]]\nname = \"usbd\"\npriority = 40\nvcpu = \"usb-manage\"\nheap = \"384K\"\n\
             stack = \"40K\"\nthreads = {threads}\nsemaphores = {semaphores}\n\
             events = {messages}\nuses = [{uses}]\n[process.settings]\n{settings}\n\
             [[vcpu]]\nname = \"usb-manage\"\nbudget = \"100us\"\nperiod = \"2500us\"\n{vcpus}\
             [[device]]\nname = \"xhci\"\npci = \"0c0330\"\nsize = \"16K\"\nirqs = {messages}\n\
             interval = [{intervals}]\n\
             [[segment]]\nname = \"usb-rings\"\nsize = \"512K\"\ndma = true\n\
             [[segment]]\nname = \"usb-buffers\"\nsize = \"16K\"\ndma = true\n"
        )
    }
}

/// Returns the names that both sides of these links use.
fn names(links: std::ops::Range<usize>) -> String {
    let each =
        links.map(|link| format!("\"link{link}.asks\", \"link{link}.done\", \"link{link}.ask\", "));
    each.collect::<String>() + "\"link.ready\", \"link.data\""
}
